// config: selects the devices of this machine that a program uses. The names are those of TensorFlow's tf.config. The
// Set functions may be called in any order, but only before a Session, a Server, a strategy or ListLogicalDevices uses
// devices for the first time. A later call throws FailedPreconditionError, which names the first use. The settings hold
// for the whole process. One exception: if the device_count of a session or server names a type that is not hidden, the
// session or server has that many logical devices of the type.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"

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
// Returns the logical devices of the visible physical devices; a device_count does not change the result. After this
// call the Set functions throw FailedPreconditionError.
COHORT_EXPORT std::vector<LogicalDevice> ListLogicalDevices(const std::string& device_type = "");
// Makes `devices` the only physical devices of type `device_type` that sessions and servers use. If no device of a type
// is left, the type is hidden: sessions have no device of it, even if their device_count names it. `device_type` ""
// means all types. Throws InvalidArgumentError if the machine lacks one of the devices, if one of them has another
// type, or if the CPU would be hidden (every program needs it).
COHORT_EXPORT void SetVisibleDevices(const std::vector<PhysicalDevice>& devices, const std::string& device_type = "");
// Makes `count` logical devices share the physical device. Without this call a physical device has one logical device.
// Throws InvalidArgumentError if `count` is less than 1 or the machine lacks the device.
COHORT_EXPORT void SetLogicalDevices(const PhysicalDevice& device, int count);
// Always throws: FailedPreconditionError after the first use of devices, before that InvalidArgumentError, because no
// device of this build has memory that can grow. It exists for programs that call it, as in TensorFlow, for each device
// in ListPhysicalDevices("GPU"), which is empty in a build without GPUs.
COHORT_EXPORT void SetMemoryGrowth(const PhysicalDevice& device, bool enable);

}  // namespace cohort::config
