#include "cohort/collective/group_place.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/cluster_node.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

constexpr char kJoinerName[] = "joiner";

std::shared_ptr<CommunicatorSlot> SlotOf(ResourceManager& resources, int64_t key, const std::string& device) {
  return resources.LookupOrCreate<CommunicatorSlot>(kCommunicatorContainer, CommunicatorName(key, device),
                                                    [] { return std::make_shared<CommunicatorSlot>(); });
}

bool AreOfOneTask(const std::vector<DeviceName>& members, const std::string& device) {
  const std::string task = DeviceName::Parse(device).Task().ToString();
  return std::all_of(members.begin(), members.end(),
                     [&](const DeviceName& member) { return member.Task().ToString() == task; });
}

}  // namespace

std::shared_ptr<GroupJoiner> GroupJoiner::Find(ResourceManager& resources) {
  return std::dynamic_pointer_cast<GroupJoiner>(resources.Lookup(kCommunicatorContainer, kJoinerName));
}

void GroupJoiner::AddTo(ResourceManager& resources, const std::shared_ptr<GroupJoiner>& self) {
  resources.LookupOrCreate<GroupJoiner>(kCommunicatorContainer, kJoinerName, [&] { return self; });
}

void GroupJoiner::Join(GroupOptions options, Joined joined) {
  {
    MutexLock lock(mu_);
    if (!closed_) {
      threads_.emplace_back([this, options = std::move(options), joined = std::move(joined)] {
        SetThreadName("cohort-join");
        std::unique_ptr<Group> group;
        Status status;
        try {
          group = JoinGroup(node_, options, std::chrono::steady_clock::now() + node_.connect_timeout());
        } catch (...) {
          status = Status::FromCurrentException();
        }
        joined(status, std::move(group));
      });
      return;
    }
  }
  joined(Status(Code::kUnavailable, "[collective] the server stops and joins no group any more"), nullptr);
}

void GroupJoiner::Close() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mu_);
    closed_ = true;
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void GroupWaiter::Call(const Status& status, std::shared_ptr<Communicator> communicator) {
  if (!called_.exchange(true)) tell_(status, std::move(communicator));
}

std::shared_ptr<GroupPlace> GroupPlace::Of(ResourceManager& resources, int64_t key) {
  return resources.LookupOrCreate<GroupPlace>(kCommunicatorContainer, StrCat(key),
                                              [&] { return std::make_shared<GroupPlace>(resources); });
}

void GroupPlace::Ask(const GroupOptions& options, const std::string& device, std::shared_ptr<GroupWaiter> waiter) {
  const bool local = AreOfOneTask(options.members, device);
  std::shared_ptr<GroupJoiner> joiner;
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
      waiting_.push_back({device, std::move(waiter)});
      return;
    } else if (local) {
      if (!same || group_ == nullptr || !group_->status().ok()) {
        earlier = Begin(options);
        FormLocal(options);
      }
      status = failed_;
    } else if (same) {
      status = group_ != nullptr ? group_->status() : failed_;
    } else if (joiner = GroupJoiner::Find(resources_); joiner == nullptr) {
      status = Status(Code::kFailedPrecondition,
                      StrCat("[collective] group ", options.key, " has members on other tasks; ", device,
                             " is of a session without a cluster: give the session a server's target"));
    } else {
      earlier = Begin(options);
      joining_ = true;
      waiting_.push_back({device, std::move(waiter)});
    }
  }
  earlier.reset();
  if (joiner == nullptr) return Tell(options.key, status, {{device, std::move(waiter)}});
  joiner->Join(options,
               [self = shared_from_this(), key = options.key](const Status& joined, std::unique_ptr<Group> group) {
                 self->OnJoined(key, joined, std::move(group));
               });
}

std::shared_ptr<const Schedule> GroupPlace::Share(const std::string& device, std::shared_ptr<const Schedule> schedule) {
  MutexLock lock(mu_);
  std::weak_ptr<const Schedule>& last = schedules_[device];
  if (auto known = last.lock(); known != nullptr && known->entries == schedule->entries) return known;
  last = schedule;
  return schedule;
}

std::unique_ptr<Group> GroupPlace::Begin(const GroupOptions& options) {
  generation_ = options.generation;
  members_ = options.members;
  failed_ = Status();
  return std::move(group_);
}

void GroupPlace::FormLocal(const GroupOptions& options) {
  try {
    group_ = MakeLocalGroup(options);
    group_->Publish(resources_);
  } catch (...) {
    failed_ = Status::FromCurrentException();
  }
}

void GroupPlace::OnJoined(int64_t key, const Status& status, std::unique_ptr<Group> group) {
  std::vector<Asked> asked;
  {
    MutexLock lock(mu_);
    joining_ = false;
    failed_ = status;
    group_ = std::move(group);
    if (group_ != nullptr) group_->Publish(resources_);
    asked.swap(waiting_);
  }
  Tell(key, status, asked);
}

void GroupPlace::Tell(int64_t key, const Status& status, const std::vector<Asked>& asked) {
  for (const Asked& one : asked) {
    std::shared_ptr<Communicator> communicator;
    if (status.ok()) communicator = SlotOf(resources_, key, one.device)->Get();
    if (status.ok() && communicator == nullptr) {
      one.waiter->Call(
          Status(Code::kInvalidArgument, StrCat("[collective] ", one.device, " is no member of group ", key,
                                                ", of which an op stands there: place the op on a member")),
          nullptr);
    } else {
      one.waiter->Call(status, std::move(communicator));
    }
  }
}

}  // namespace cohort::collective
