// config: selects the devices of this machine that a program uses. The names are those of TensorFlow's tf.config. The
// Set functions may be called in any order, but only before a Session, a Server, a strategy or ListLogicalDevices uses
// devices for the first time. A later call throws FailedPreconditionError, which names the first use. The settings hold
// for the whole process. One exception: if a session or server has a device_count for a type, it has that many logical
// devices of the type.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/mutex.h"

namespace cohort::config {

// A device of the machine.
struct COHORT_EXPORT PhysicalDevice {
  std::string name;         // "/physical_device:CPU:0"
  std::string device_type;  // "CPU"
  friend bool operator==(const PhysicalDevice&, const PhysicalDevice&) = default;
};
// A device that the program sees.
struct COHORT_EXPORT LogicalDevice {
  std::string name;         // "/device:CPU:1", as device scopes and strategies take it
  std::string device_type;  // "CPU"
  friend bool operator==(const LogicalDevice&, const LogicalDevice&) = default;
};

// Returns the devices of the machine, visible or not. `device_type` "" means all types. All processors of the machine
// are one CPU. A build without GPUs lists no GPU.
COHORT_EXPORT std::vector<PhysicalDevice> ListPhysicalDevices(const std::string& device_type = "");
// Returns the logical devices of the visible physical devices. After this call the Set functions throw.
COHORT_EXPORT std::vector<LogicalDevice> ListLogicalDevices(const std::string& device_type = "");
// Makes `devices` the only devices of their type that sessions and servers use, whatever their device_count is. An
// empty list hides the type. `device_type` "" means all types. Throws InvalidArgumentError if the machine lacks one of
// the devices, if one has another type, or if no CPU is left (every program needs the CPU).
COHORT_EXPORT void SetVisibleDevices(const std::vector<PhysicalDevice>& devices, const std::string& device_type = "");
// Makes `count` logical devices share the physical device. Throws InvalidArgumentError if `count` is less than 1 or the
// machine lacks the device.
COHORT_EXPORT void SetLogicalDevices(const PhysicalDevice& device, int count);
// Always throws InvalidArgumentError, because no device of this build has memory that can grow. It exists for programs
// that call it, as in TensorFlow, for each device in ListPhysicalDevices("GPU"), which is empty in a build without
// GPUs.
COHORT_EXPORT void SetMemoryGrowth(const PhysicalDevice& device, bool enable);

// Holds the settings of the functions above. Thread-safe.
class COHORT_EXPORT DeviceConfig {
 public:
  // Returns the settings of the process, which exist as long as the process.
  static DeviceConfig& Global();
  // The machine has one CPU.
  DeviceConfig();

  // Adds a physical device. Each backend calls it for each of its devices, in order. Throws AlreadyExistsError if there
  // is a device of this name.
  void AddPhysical(const PhysicalDevice& device);
  std::vector<PhysicalDevice> ListPhysical(const std::string& device_type) const;
  std::vector<LogicalDevice> ListLogical(const std::string& device_type);
  void SetVisible(const std::vector<PhysicalDevice>& devices, const std::string& device_type);
  void SetLogical(const PhysicalDevice& device, int count);
  void SetMemoryGrowth(const PhysicalDevice& device, bool enable);
  // Makes all later Set calls throw. Their messages name the `user` of the first Fix, for example "the first session".
  void Fix(const std::string& user);
  // Returns the visible physical devices of a type.
  std::vector<PhysicalDevice> Visible(const std::string& device_type) const;
  // Returns whether the machine has devices of the type and none of them is visible.
  bool IsHidden(const std::string& device_type) const;
  // Returns the number of logical devices of all visible devices of a type.
  int Count(const std::string& device_type) const;
  // Returns whether SetLogical was called for a device of the type.
  bool IsSet(const std::string& device_type) const;

 private:
  struct Entry {
    PhysicalDevice device;
    bool visible = true;
    int logical = 0;  // 0: SetLogical was not called; there is one logical device
  };
  void CheckSettable(const char* call) const COHORT_REQUIRES(mu_);
  Entry& Find(const PhysicalDevice& device, const char* call) COHORT_REQUIRES(mu_);

  mutable Mutex mu_;
  std::vector<Entry> entries_ COHORT_GUARDED_BY(mu_);
  std::string fixed_by_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::config
