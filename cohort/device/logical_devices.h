// config: selects the devices of this machine that a program uses. The names are those of TensorFlow's tf.config. The
// Set functions may be called in any order, but only before a Session, a Server, a strategy or ListLogicalDevices uses
// devices for the first time. A later call throws FailedPreconditionError, which names the first use. The settings hold
// for the whole process. One exception: if a session or server has a device_count for a type, it has that many logical
// devices of the type.
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

}  // namespace cohort::config
