#include "cohort/collective/kernel_group.h"

#include <algorithm>

#include "cohort/collective/group_directory.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

bool AreOfOneTask(const std::vector<DeviceName>& members, const std::string& device) {
  const std::string task = DeviceName::Parse(device).Task().ToString();
  return std::all_of(members.begin(), members.end(),
                     [&](const DeviceName& member) { return member.Task().ToString() == task; });
}

}  // namespace

std::shared_ptr<KernelGroup> KernelGroup::Of(ResourceManager& resources, int64_t key) {
  return resources.LookupOrCreate<KernelGroup>(kCollectiveContainer, StrCat(key),
                                               [&] { return std::make_shared<KernelGroup>(resources); });
}

size_t KernelGroup::FindOrAddDevice(const std::string& device) {
  const auto known = std::find_if(communicators_.begin(), communicators_.end(),
                                  [&](const auto& entry) { return entry.first == device; });
  const auto number = static_cast<size_t>(known - communicators_.begin());
  if (known == communicators_.end()) communicators_.emplace_back(device, nullptr);
  return number;
}

size_t KernelGroup::DeviceNumber(const std::string& device) {
  MutexLock lock(mu_);
  return FindOrAddDevice(device);
}

std::shared_ptr<Communicator> KernelGroup::communicator(size_t device_number) const {
  MutexLock lock(mu_);
  return communicators_[device_number].second;
}

void KernelGroup::SetCommunicator(const std::string& device, std::shared_ptr<Communicator> communicator) {
  MutexLock lock(mu_);
  communicators_[FindOrAddDevice(device)].second = std::move(communicator);
}

void KernelGroup::Ask(const GroupOptions& options, const std::string& device, Tell tell) {
  const bool local = AreOfOneTask(options.members, device);
  bool joins = false;
  std::unique_ptr<Group> earlier;
  Status status;
  {
    MutexLock lock(mu_);
    const bool same = options.generation == generation_ && (group_ != nullptr || joining_ || !failed_.ok());
    if (same && options.members != members_) {
      status = Status(Code::kInvalidArgument,
                      StrCat("[collective] group ", options.key, ", generation ", options.generation, ", has ",
                             members_.size(), " members; another op names ", options.members.size(),
                             " or others: give each group a key of its own"));
    } else if (joining_) {
      waiting_.push_back({device, std::move(tell)});
      return;
    } else if (local) {
      if (!same || group_ == nullptr || !group_->status().ok()) {
        earlier = Begin(options);
        FormLocal(options);
      }
      status = failed_;
    } else if (same) {
      status = group_ != nullptr ? group_->status() : failed_;
    } else if (!GroupDirectory::CanJoin(resources_)) {
      status = Status(Code::kFailedPrecondition,
                      StrCat("[collective] group ", options.key, " has members on other tasks; ", device,
                             " is of a session without a cluster: give the session a server's target"));
    } else {
      joins = true;
      earlier = Begin(options);
      joining_ = true;
      waiting_.push_back({device, std::move(tell)});
    }
  }
  earlier.reset();
  if (!joins) return Answer(options.key, status, {{device, std::move(tell)}});
  GroupDirectory::JoinAsync(
      resources_, options,
      [self = shared_from_this(), key = options.key](const Status& joined, std::unique_ptr<Group> group) {
        self->OnJoined(key, joined, std::move(group));
      });
}

std::shared_ptr<const StepSchedule> KernelGroup::Share(const std::string& device,
                                                       std::shared_ptr<const StepSchedule> schedule) {
  MutexLock lock(mu_);
  std::weak_ptr<const StepSchedule>& last = schedules_[device];
  if (auto known = last.lock(); known != nullptr && known->entries == schedule->entries) return known;
  last = schedule;
  return schedule;
}

std::unique_ptr<Group> KernelGroup::Begin(const GroupOptions& options) {
  generation_ = options.generation;
  members_ = options.members;
  failed_ = Status();
  return std::move(group_);
}

void KernelGroup::FormLocal(const GroupOptions& options) {
  try {
    Adopt(MakeLocalGroup(options));
  } catch (...) {
    failed_ = Status::FromCurrentException();
  }
}

void KernelGroup::Adopt(std::unique_ptr<Group> group) {
  for (size_t local = 0; local < group->local_ranks().size(); ++local) {
    const DeviceName& device = members_[static_cast<size_t>(group->local_ranks()[local])];
    communicators_[FindOrAddDevice(device.ToString())].second = group->communicator(static_cast<int>(local));
  }
  group_ = std::move(group);
}

void KernelGroup::OnJoined(int64_t key, const Status& status, std::unique_ptr<Group> group) {
  std::vector<Request> requests;
  {
    MutexLock lock(mu_);
    joining_ = false;
    failed_ = status;
    if (group != nullptr) Adopt(std::move(group));
    requests.swap(waiting_);
  }
  Answer(key, status, requests);
}

void KernelGroup::Answer(int64_t key, const Status& status, const std::vector<Request>& requests) {
  for (const Request& request : requests) {
    std::shared_ptr<Communicator> found;
    if (status.ok()) found = communicator(DeviceNumber(request.device));
    if (status.ok() && found == nullptr) {
      request.tell(
          Status(Code::kInvalidArgument, StrCat("[collective] ", request.device, " is no member of group ", key,
                                                ", of which an op stands there: place the op on a member")),
          nullptr);
    } else {
      request.tell(status, std::move(found));
    }
  }
}

}  // namespace cohort::collective
