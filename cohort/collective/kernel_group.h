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

// The container in a task's ResourceManager that holds the objects of collectives.
inline constexpr const char* kCollectiveContainer = "_communicators";

// Gives kernels the communicators of their devices. If the program has joined the group and published it, they are
// those of this group. Otherwise the group forms when a kernel first asks for it, and the KernelGroup owns the group. A
// task's ResourceManager owns the KernelGroup, in a container of its own, so that clearing variables does not remove
// it. Thread-safe.
class KernelGroup final : public Resource, public std::enable_shared_from_this<KernelGroup> {
 public:
  // Call Of instead, which makes `resources` the owner.
  explicit KernelGroup(ResourceManager& resources) : resources_(resources) {}
  // Returns the KernelGroup of `key`. Makes it if there is none.
  static std::shared_ptr<KernelGroup> Of(ResourceManager& resources, int64_t key);

  std::string Describe() const override { return "a group of kernels"; }

  // Returns a number for `device`, which communicator() takes. The number of a device never changes.
  size_t DeviceNumber(const std::string& device) COHORT_EXCLUDES(mu_);
  // Returns the communicator of the device, or null if no group with this device was published or formed. Requires:
  // DeviceNumber has returned `device_number`.
  std::shared_ptr<Communicator> communicator(size_t device_number) const COHORT_EXCLUDES(mu_);
  // Gives kernels on `device` this communicator from now on, instead of an earlier one.
  void SetCommunicator(const std::string& device, std::shared_ptr<Communicator> communicator) COHORT_EXCLUDES(mu_);

  // Calls `tell` once, with the communicator of `device` or with an error, on this thread or on a thread that joins the
  // group. Forms the group of `options` if there is none of this generation. If the group of this generation has
  // failed, and all members are on this task, forms it again. If it has failed and has members on other tasks, `tell`
  // gets its error until a kernel asks for another generation. If the processes of another generation are joining,
  // `tell` gets the outcome of that generation. Requires: `options.members` are full names.
  using Tell = std::function<void(const Status&, std::shared_ptr<Communicator>)>;
  void Ask(const GroupOptions& options, const std::string& device, Tell tell) COHORT_EXCLUDES(mu_);
  // Returns the schedule of the last call for `device` if it is equal to `schedule` and still in use; otherwise returns
  // `schedule`. So all kernels of a graph share one schedule.
  std::shared_ptr<const StepSchedule> Share(const std::string& device, std::shared_ptr<const StepSchedule> schedule)
      COHORT_EXCLUDES(mu_);

 private:
  struct Request {
    std::string device;
    Tell tell;
  };

  // Prepares to form the group of `options`. Returns the group before it, which the caller must destroy without the
  // lock.
  std::unique_ptr<Group> Begin(const GroupOptions& options) COHORT_REQUIRES(mu_);
  void FormLocal(const GroupOptions& options) COHORT_REQUIRES(mu_);
  // Makes `group` the group whose communicators kernels get.
  void Adopt(std::unique_ptr<Group> group) COHORT_REQUIRES(mu_);
  size_t FindOrAddDevice(const std::string& device) COHORT_REQUIRES(mu_);
  void OnJoined(int64_t key, const Status& status, std::unique_ptr<Group> group) COHORT_EXCLUDES(mu_);
  // Calls `tell` of each request, with its communicator or with the error.
  void Answer(int64_t key, const Status& status, const std::vector<Request>& requests) COHORT_EXCLUDES(mu_);

  ResourceManager& resources_;
  mutable Mutex mu_;
  std::vector<std::pair<std::string, std::shared_ptr<Communicator>>> communicators_
      COHORT_GUARDED_BY(mu_);  // by device number
  bool joining_ COHORT_GUARDED_BY(mu_) = false;
  // generation_, members_, failed_ and group_ describe the group that forms by itself: the latest attempt to form it.
  int64_t generation_ COHORT_GUARDED_BY(mu_) = 0;
  std::vector<DeviceName> members_ COHORT_GUARDED_BY(mu_);
  Status failed_ COHORT_GUARDED_BY(mu_);  // why the group of `generation_` could not be formed
  std::unique_ptr<Group> group_ COHORT_GUARDED_BY(mu_);
  std::vector<Request> waiting_ COHORT_GUARDED_BY(mu_);  // answered when joining_ becomes false
  std::map<std::string, std::weak_ptr<const StepSchedule>> schedules_
      COHORT_GUARDED_BY(mu_);  // the latest of each device
};

}  // namespace cohort::collective
