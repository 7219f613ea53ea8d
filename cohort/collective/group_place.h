// Where the kernels of a task find their groups: those that the program has joined and published, and those that form
// themselves when a kernel first asks. Internal to collective/.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/collective/group.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// Joins groups on behalf of a server's kernels, each on a thread of its own; in the task's ResourceManager.
// Thread-safe.
class GroupJoiner final : public Resource {
 public:
  using Joined = std::function<void(const Status&, std::unique_ptr<Group>)>;

  explicit GroupJoiner(ClusterNode& node) : node_(node) {}
  ~GroupJoiner() override { Close(); }
  static std::shared_ptr<GroupJoiner> Find(ResourceManager& resources);
  void AddTo(ResourceManager& resources, const std::shared_ptr<GroupJoiner>& self);

  std::string Describe() const override { return "the joiner of groups"; }
  // `joined` is called once, on a thread that may wait.
  void Join(GroupOptions options, Joined joined);
  // The node stops, so that no join waits any longer; returns when none is under way. Later ones fail.
  void Close();

 private:
  ClusterNode& node_;
  Mutex mu_;
  bool closed_ GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mu_);
};

// Who waits for a communicator. Thread-safe.
class GroupWaiter {
 public:
  using Tell = std::function<void(const Status&, std::shared_ptr<Communicator>)>;
  explicit GroupWaiter(Tell tell) : tell_(std::move(tell)) {}
  // The first call counts.
  void Call(const Status& status, std::shared_ptr<Communicator> communicator);

 private:
  std::atomic<bool> called_{false};
  Tell tell_;
};

// The groups of one key that form themselves on one task; in its ResourceManager. Thread-safe.
class GroupPlace final : public Resource, public std::enable_shared_from_this<GroupPlace> {
 public:
  // `resources` owns it.
  explicit GroupPlace(ResourceManager& resources) : resources_(resources) {}
  static std::shared_ptr<GroupPlace> Of(ResourceManager& resources, int64_t key);

  std::string Describe() const override { return "a place for groups"; }
  // Tells `waiter` the communicator of `device`, perhaps before it returns. Where all members are of this task, a group
  // that has failed makes way for another one; of others the error is told until somebody asks for a later generation.
  // `options.members` are full names.
  void Ask(const GroupOptions& options, const std::string& device, std::shared_ptr<GroupWaiter> waiter);
  // An equal schedule that another kernel of the device has already, or this one: the kernels of a graph share one.
  std::shared_ptr<const Schedule> Share(const std::string& device, std::shared_ptr<const Schedule> schedule)
      EXCLUDES(mu_);

 private:
  struct Asked {
    std::string device;
    std::shared_ptr<GroupWaiter> waiter;
  };

  // Makes way for a group of `options`. Returns the earlier one, to be dropped without the lock.
  std::unique_ptr<Group> Begin(const GroupOptions& options) REQUIRES(mu_);
  void FormLocal(const GroupOptions& options) REQUIRES(mu_);
  void OnJoined(int64_t key, const Status& status, std::unique_ptr<Group> group) EXCLUDES(mu_);
  void Tell(int64_t key, const Status& status, const std::vector<Asked>& asked) EXCLUDES(mu_);

  ResourceManager& resources_;
  Mutex mu_;
  bool joining_ GUARDED_BY(mu_) = false;
  int64_t generation_ GUARDED_BY(mu_) = 0;           // of the group, or of the attempt that has failed
  std::vector<DeviceName> members_ GUARDED_BY(mu_);  // likewise
  Status failed_ GUARDED_BY(mu_);                    // why there is no group of `generation_`
  std::unique_ptr<Group> group_ GUARDED_BY(mu_);
  std::vector<Asked> waiting_ GUARDED_BY(mu_);
  std::map<std::string, std::weak_ptr<const Schedule>> schedules_ GUARDED_BY(mu_);  // the last one of each device
};

}  // namespace cohort::collective
