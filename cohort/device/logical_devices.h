// config: which devices of this machine a program uses, with the names of TensorFlow's tf.config. The Set functions may
// be called in any order before devices are first used by a Session, a Server, a strategy or ListLogicalDevices. A
// later call throws FailedPreconditionError, which names the first use. What is set here counts for all of the process;
// only the number of a type's logical devices is that of a session's or server's device_count, if it has one for the
// type.
#pragma once

#include <string>
#include <vector>

namespace cohort::config {

struct PhysicalDevice {
  std::string name;         // "/physical_device:CPU:0"
  std::string device_type;  // "CPU"
  friend bool operator==(const PhysicalDevice&, const PhysicalDevice&) = default;
};
struct LogicalDevice {
  std::string name;         // "/device:CPU:1", as device scopes and strategies take it
  std::string device_type;  // "CPU"
  friend bool operator==(const LogicalDevice&, const LogicalDevice&) = default;
};

// The devices of the machine, whether they are visible or not; `device_type` "" stands for all types. All processors of
// the machine are one CPU. A build without GPUs lists no GPU.
std::vector<PhysicalDevice> ListPhysicalDevices(const std::string& device_type = "");
// Returns the logical devices on the visible physical ones. From this call on nothing can be set any more.
std::vector<LogicalDevice> ListLogicalDevices(const std::string& device_type = "");
// Makes `devices` the only devices of their type that sessions and servers use, whatever their device_count says; {}
// hides a type. `device_type` "" stands for all types. Throws InvalidArgumentError for a device that the machine does
// not have, for one of another type, and if no CPU is left, because every program needs the CPU.
void SetVisibleDevices(const std::vector<PhysicalDevice>& devices, const std::string& device_type = "");
// Lets `count` logical devices share the physical one. Throws InvalidArgumentError for a count below 1.
void SetLogicalDevices(const PhysicalDevice& device, int count);
// Throws InvalidArgumentError for the CPU, as in TensorFlow: only a GPU's memory can grow. A program calls it for each
// device in ListPhysicalDevices("GPU"), which is never in a build without GPUs, and no build has them yet.
void SetMemoryGrowth(const PhysicalDevice& device, bool enable);

}  // namespace cohort::config
