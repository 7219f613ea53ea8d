// KernelGroup: the group of one key as the kernels of a task see it. Internal to collective/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/group.h"
#include "cohort/collective/schedule.h"
#include "cohort/core/mutex.h"
#include "cohort/device/resource.h"

namespace cohort::collective {

// The container of a task's ResourceManager for what collectives keep there.
inline constexpr const char* kCollectiveContainer = "_communicators";

// Gives kernels the communicators of their devices. The group is one that the program has joined and published, or one
// that forms itself when a kernel first asks for it; this object owns the latter. It is in the task's ResourceManager,
// in a container of its own, so that clearing variables leaves it. Thread-safe.
class KernelGroup final : public Resource, public std::enable_shared_from_this<KernelGroup> {
 public:
  // Use Of. `resources` owns it.
  explicit KernelGroup(ResourceManager& resources) : resources_(resources) {}
  // Returns the one of `key`; makes it if there is none.
  static std::shared_ptr<KernelGroup> Of(ResourceManager& resources, int64_t key);

  std::string Describe() const override { return "a group of kernels"; }

  // Returns a number for `device`, for Communicator. The numbers never change.
  size_t DeviceNumber(const std::string& device) COHORT_EXCLUDES(mu_);
  // Returns the communicator of the device, null if no group was published or formed.
  std::shared_ptr<Communicator> communicator(size_t device_number) const COHORT_EXCLUDES(mu_);
  void SetCommunicator(const std::string& device, std::shared_ptr<Communicator> communicator) COHORT_EXCLUDES(mu_);

  // Gives `tell` the communicator of `device`, perhaps before this returns; forms the group of `options` if there is
  // none. If all members are of this task, a group that has failed is replaced by a new one. Otherwise its error is
  // told until a kernel asks for a later generation. Requires: `options.members` are full names.
  using Tell = std::function<void(const Status&, std::shared_ptr<Communicator>)>;
  void Ask(const GroupOptions& options, const std::string& device, Tell tell) COHORT_EXCLUDES(mu_);
  // Returns the schedule that another kernel of the device has if it is equal, else `schedule`. So all kernels of a
  // graph share one.
  std::shared_ptr<const StepSchedule> Share(const std::string& device, std::shared_ptr<const StepSchedule> schedule)
      COHORT_EXCLUDES(mu_);

 private:
  struct Request {
    std::string device;
    Tell tell;
  };

  // Prepares for the group of `options`. Returns the group before it, which the caller destroys without the lock.
  std::unique_ptr<Group> Begin(const GroupOptions& options) COHORT_REQUIRES(mu_);
  void FormLocal(const GroupOptions& options) COHORT_REQUIRES(mu_);
  // Makes `group` the one whose communicators kernels get.
  void Adopt(std::unique_ptr<Group> group) COHORT_REQUIRES(mu_);
  size_t FindOrAddDevice(const std::string& device) COHORT_REQUIRES(mu_);
  void OnJoined(int64_t key, const Status& status, std::unique_ptr<Group> group) COHORT_EXCLUDES(mu_);
  // Tells the communicators, or why there are none.
  void Answer(int64_t key, const Status& status, const std::vector<Request>& requests) COHORT_EXCLUDES(mu_);

  ResourceManager& resources_;
  mutable Mutex mu_;
  std::vector<std::pair<std::string, std::shared_ptr<Communicator>>> communicators_
      COHORT_GUARDED_BY(mu_);  // by device number
  bool joining_ COHORT_GUARDED_BY(mu_) = false;
  // Of the group that forms itself, or of the attempt to form it that has failed:
  int64_t generation_ COHORT_GUARDED_BY(mu_) = 0;
  std::vector<DeviceName> members_ COHORT_GUARDED_BY(mu_);
  Status failed_ COHORT_GUARDED_BY(mu_);  // why there is no group of `generation_`
  std::unique_ptr<Group> group_ COHORT_GUARDED_BY(mu_);
  std::vector<Request> waiting_ COHORT_GUARDED_BY(mu_);
  std::map<std::string, std::weak_ptr<const StepSchedule>> schedules_
      COHORT_GUARDED_BY(mu_);  // the latest of each device
};

}  // namespace cohort::collective
