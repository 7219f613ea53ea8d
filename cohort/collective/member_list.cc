#include "cohort/collective/member_list.h"

#include <algorithm>

#include "cohort/cluster/host_identity.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/reduction.h"

namespace cohort::collective {
namespace {

DeviceName Completed(const DeviceName& name) {
  DeviceName base;
  base.replica = 0;
  base.task = 0;
  base.type = kHostDeviceType;
  base.id = 0;
  return name.CompletedFrom(base);
}

}  // namespace

MemberList::MemberList(int64_t group_key, const std::vector<DeviceName>& members, const std::string& own_task) {
  for (const DeviceName& member : members) {
    const DeviceName name = Completed(member);
    if (std::find(devices_.begin(), devices_.end(), name.ToString()) != devices_.end()) {
      throw InvalidArgumentError(
          StrCat("[collective] ", name.ToString(), " is a member of group ", group_key, " twice"));
    }
    const std::string task = own_task.empty() ? "this process" : name.Task().ToString();
    if (FindProcess(task) < 0) tasks_.push_back(task);
    locations_.push_back({0, FindProcess(task)});
    const bool here = own_task.empty() || task == own_task;
    if (here) own_process_ = locations_.back().process;
    local_index_.push_back(here ? static_cast<int>(local_ranks_.size()) : -1);
    if (here) local_ranks_.push_back(static_cast<int>(devices_.size()));
    device_type_ = devices_.empty() || device_type_ == *name.type ? *name.type : "";
    devices_.push_back(name.ToString());
  }
  if (local_ranks_.empty()) {
    throw InvalidArgumentError(StrCat("[collective] expected a member of group ", group_key, " on ",
                                      own_task.empty() ? "this process" : own_task, "; got ", StrJoin(devices_, ", ")));
  }
}

int MemberList::FindProcess(const std::string& task) const {
  const auto found = std::find(tasks_.begin(), tasks_.end(), task);
  return found == tasks_.end() ? -1 : static_cast<int>(found - tasks_.begin());
}

int MemberList::NumMembersOf(int process) const {
  return static_cast<int>(std::count_if(locations_.begin(), locations_.end(),
                                        [&](const Location& location) { return location.process == process; }));
}

void MemberList::SetHosts(const std::vector<std::string>& identities) {
  const std::vector<int> hosts = NumberHosts(identities);
  for (Location& location : locations_) location.host = hosts[static_cast<size_t>(location.process)];
}

std::string MemberList::DescribeRank(int rank) const {
  if (rank < 0 || rank >= size()) return StrCat("rank ", rank);
  return StrCat("rank ", rank, " (", devices_[static_cast<size_t>(rank)], ")");
}

std::string MemberList::DescribeProcess(int process) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (process_of(rank) == process) ranks.push_back(rank);
  }
  return StrCat(ranks.size() > 1 ? "ranks " : "rank ", StrJoin(ranks, ", "), " (", tasks_[static_cast<size_t>(process)],
                ")");
}

}  // namespace cohort::collective
