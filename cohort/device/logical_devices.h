// config: which devices of this machine a program uses, with the names of TensorFlow's tf.config. The Set functions may
// be called in any order before devices are first used by a Session, a Server, a strategy or ListLogicalDevices. A
// later call throws FailedPreconditionError, which names the first use. What is set here counts for all of the process;
// only the number of a type's logical devices is that of a session's or server's device_count, if it has one for the
// type.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/mutex.h"

namespace cohort::config {

struct COHORT_EXPORT PhysicalDevice {
  std::string name;         // "/physical_device:CPU:0"
  std::string device_type;  // "CPU"
  friend bool operator==(const PhysicalDevice&, const PhysicalDevice&) = default;
};
struct COHORT_EXPORT LogicalDevice {
  std::string name;         // "/device:CPU:1", as device scopes and strategies take it
  std::string device_type;  // "CPU"
  friend bool operator==(const LogicalDevice&, const LogicalDevice&) = default;
};

// The devices of the machine, whether they are visible or not; `device_type` "" stands for all types. All processors of
// the machine are one CPU. A build without GPUs lists no GPU.
COHORT_EXPORT std::vector<PhysicalDevice> ListPhysicalDevices(const std::string& device_type = "");
// Returns the logical devices on the visible physical ones. From this call on nothing can be set any more.
COHORT_EXPORT std::vector<LogicalDevice> ListLogicalDevices(const std::string& device_type = "");
// Makes `devices` the only devices of their type that sessions and servers use, whatever their device_count says; {}
// hides a type. `device_type` "" stands for all types. Throws InvalidArgumentError for a device that the machine does
// not have, for one of another type, and if no CPU is left, because every program needs the CPU.
COHORT_EXPORT void SetVisibleDevices(const std::vector<PhysicalDevice>& devices, const std::string& device_type = "");
// Lets `count` logical devices share the physical one. Throws InvalidArgumentError for a count below 1.
COHORT_EXPORT void SetLogicalDevices(const PhysicalDevice& device, int count);
// Throws InvalidArgumentError for the CPU, as in TensorFlow: only a GPU's memory can grow. A program calls it for each
// device in ListPhysicalDevices("GPU"), which is never in a build without GPUs, and no build has them yet.
COHORT_EXPORT void SetMemoryGrowth(const PhysicalDevice& device, bool enable);

// What is behind the functions. Thread-safe.
class COHORT_EXPORT DeviceConfig {
 public:
  // The process's.
  static DeviceConfig& Global();
  // Knows the CPU.
  DeviceConfig();

  // A backend announces each of its physical devices, in order. Throws AlreadyExistsError for a known name.
  void AddPhysical(const PhysicalDevice& device);
  std::vector<PhysicalDevice> ListPhysical(const std::string& device_type) const;
  std::vector<LogicalDevice> ListLogical(const std::string& device_type);
  void SetVisible(const std::vector<PhysicalDevice>& devices, const std::string& device_type);
  void SetLogical(const PhysicalDevice& device, int count);
  void SetMemoryGrowth(const PhysicalDevice& device, bool enable);
  // From now on nothing can be set; the first `user` ("the first session") is named.
  void Fix(const std::string& user);
  // Returns the physical devices of a type that the process uses.
  std::vector<PhysicalDevice> Visible(const std::string& device_type) const;
  // Returns whether the machine has devices of the type and SetVisible has left none of them.
  bool IsHidden(const std::string& device_type) const;
  // Returns how many logical devices the visible devices of a type have together.
  int Count(const std::string& device_type) const;
  // Returns whether SetLogical was called for the type.
  bool IsSet(const std::string& device_type) const;

 private:
  struct Entry {
    PhysicalDevice device;
    bool visible = true;
    int logical = 0;  // 0: SetLogical was not called, and there is one
  };
  void CheckSettable(const char* call) const COHORT_REQUIRES(mu_);
  Entry& Find(const PhysicalDevice& device, const char* call) COHORT_REQUIRES(mu_);

  mutable Mutex mu_;
  std::vector<Entry> entries_ COHORT_GUARDED_BY(mu_);
  std::string fixed_by_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::config
