// MemberList: the members of a group and the processes that they belong to. Internal to collective/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/collective/algorithm.h"
#include "cohort/graph/device_name.h"

namespace cohort::collective {

// The devices of a group by rank, and their processes. A process is numbered by the order in which processes first
// appear among the members. The name of a process is its task, or "this process" if the list was made without
// `own_task`. A Membership owns the list. Only SetHosts changes it: any thread may read the hosts after that call, and
// everything else at any time.
class MemberList {
 public:
  // Completes the name of each member: adds replica 0, task 0, the device type CPU and the device number 0 if the name
  // has no such part. A missing job stays missing. `own_task` is this process ("/job:worker/replica:0/task:0"), or ""
  // if all members are devices of this process. Throws InvalidArgumentError, with `group_key`, if a device is a member
  // twice or if this process has no member.
  MemberList(int64_t group_key, const std::vector<DeviceName>& members, const std::string& own_task);

  int size() const { return static_cast<int>(devices_.size()); }
  // Index: rank. Full device names.
  const std::vector<std::string>& devices() const { return devices_; }
  // Returns the type of all devices, or "" if they differ in type.
  const std::string& device_type() const { return device_type_; }
  // Index: rank. `process` is valid from the beginning, `host` after SetHosts.
  const std::vector<Location>& locations() const { return locations_; }
  int process_of(int rank) const { return locations_[static_cast<size_t>(rank)].process; }
  // Index: process.
  const std::vector<std::string>& tasks() const { return tasks_; }
  bool has_one_process() const { return tasks_.size() == 1; }
  int own_process() const { return own_process_; }
  const std::string& own_task() const { return tasks_[static_cast<size_t>(own_process_)]; }
  // The ranks of this process, in order.
  const std::vector<int>& local_ranks() const { return local_ranks_; }
  // Returns the position of `rank` in local_ranks(), or -1 if it belongs to another process.
  int local_index(int rank) const { return local_index_[static_cast<size_t>(rank)]; }

  // Returns the process of a task, or -1 if the task has no member.
  int FindProcess(const std::string& task) const;
  int NumMembersOf(int process) const;
  // Sets the hosts of all locations. `identities` has one host identity for each process. Processes with the same
  // identity are on one host; each process with the identity "" is on a host of its own. Call it once, before a member
  // calls a collective.
  void SetHosts(const std::vector<std::string>& identities);

  // Returns "rank 2 (/job:worker/replica:0/task:2/device:CPU:0)".
  std::string DescribeRank(int rank) const;
  // Returns "ranks 2, 3 (/job:worker/replica:0/task:1)".
  std::string DescribeProcess(int process) const;

 private:
  std::vector<std::string> devices_;
  std::string device_type_;
  std::vector<Location> locations_;
  std::vector<std::string> tasks_;
  int own_process_ = 0;
  std::vector<int> local_ranks_;
  std::vector<int> local_index_;
};

}  // namespace cohort::collective
