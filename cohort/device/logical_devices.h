// config: selects the devices of this machine that a program uses. The names are those of TensorFlow's tf.config. The
// Set functions may be called in any order, but only before a Session, a Server, a strategy or ListLogicalDevices uses
// devices for the first time. A later call throws FailedPreconditionError, which names the first use. The settings hold
// for the whole process. One exception: if the device_count of a session or server names a type that is not hidden, the
// session or server has that many logical devices of the type.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
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

// The devices that ListPhysicalDevices returns: a vector that checks positions. A program that asks for gpus[1] on a
// machine with one GPU so learns which devices there are.
class COHORT_EXPORT PhysicalDeviceList : public std::vector<PhysicalDevice> {
 public:
  // `device_type` is what was asked for, for errors.
  PhysicalDeviceList(std::vector<PhysicalDevice> devices, std::string device_type)
      : std::vector<PhysicalDevice>(std::move(devices)), device_type_(std::move(device_type)) {}
  // Return device i. Throw InvalidArgumentError, which lists the devices, if there is none.
  const PhysicalDevice& operator[](size_t i) const;
  const PhysicalDevice& at(size_t i) const { return (*this)[i]; }

 private:
  std::string device_type_;
};

// Returns the devices of the machine, visible or not. `device_type` "" means all types. All processors of the machine
// are one CPU. GPUs are those that the driver lists, which the environment variable CUDA_VISIBLE_DEVICES limits; there
// are none in a build without GPUs and on a machine without a driver. The first call looks for them.
COHORT_EXPORT PhysicalDeviceList ListPhysicalDevices(const std::string& device_type = "");
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
// What one logical device may use of its physical device.
struct COHORT_EXPORT LogicalDeviceConfiguration {
  // In units of 2^20 bytes. 0: an equal share of the memory that the logical devices with a limit leave.
  int64_t memory_limit = 0;
};
// Makes one logical device for each element share the physical device. A later call of this function or of
// SetLogicalDevices replaces the earlier one. Throws InvalidArgumentError if there is no element, if a limit is
// negative, if the machine lacks the device, or if a limit is set for a device whose memory is the host's.
COHORT_EXPORT void SetLogicalDeviceConfiguration(const PhysicalDevice& device,
                                                 const std::vector<LogicalDeviceConfiguration>& logical_devices);
// Says how the device's memory is taken: bit by bit as it is needed, up to the limit (true, which is also what happens
// without this call), or all of it at the first use (false, TensorFlow's default). Throws InvalidArgumentError for a
// device whose memory is the host's, as the CPU's is, and if the machine lacks the device.
COHORT_EXPORT void SetMemoryGrowth(const PhysicalDevice& device, bool enable);

// What the machine tells about a physical device.
struct COHORT_EXPORT DeviceDetails {
  std::string device_name;             // "NVIDIA H100 80GB HBM3"; empty for the CPU
  int compute_capability[2] = {0, 0};  // major and minor; 0 if the device has none
  int64_t memory_bytes = 0;            // of a memory of its own, else 0
  friend bool operator==(const DeviceDetails&, const DeviceDetails&) = default;
};
// Throws InvalidArgumentError if the machine lacks the device.
COHORT_EXPORT DeviceDetails GetDeviceDetails(const PhysicalDevice& device);

// The memory of a logical device that tensors and workspaces of this process use, in bytes.
struct COHORT_EXPORT MemoryInfo {
  int64_t current = 0;  // now
  int64_t peak = 0;     // the most since the start or since ResetMemoryStats
  friend bool operator==(const MemoryInfo&, const MemoryInfo&) = default;
};
// Returns how much of the device's memory the process uses, in all sessions and servers together. `device` is a name
// such as "GPU:0" or "/device:GPU:0". It does not count memory that the allocator keeps for later buffers, nor what the
// driver and libraries need. Throws InvalidArgumentError if the program has no such device, or if the device's memory
// is the host's, as the CPU's is. It may be called at any time. Thread-safe.
COHORT_EXPORT MemoryInfo GetMemoryInfo(const std::string& device);
// Sets the peak of GetMemoryInfo to the current value. Throws as GetMemoryInfo does.
COHORT_EXPORT void ResetMemoryStats(const std::string& device);

// Says whether devices that have TensorFloat-32 use it for matrix products and convolutions of float32. They then round
// the factors to 10 bits of fraction, and are several times as fast. Other devices, such as the CPU, never round. It is
// enabled at the start, as in TensorFlow. It may be called at any time: the call is for kernels that are enqueued
// later. A step that a device has recorded keeps the setting with which it was recorded. Thread-safe.
COHORT_EXPORT void EnableTensorFloat32Execution(bool enabled);
COHORT_EXPORT bool TensorFloat32ExecutionEnabled();

// Says whether devices that can record steps do so (on a GPU as CUDA graphs): a step that is run again with feeds of
// the same shapes is then enqueued with one call instead of one for each kernel. The results are the same bits. It is
// enabled at the start, unless the environment variable COHORT_RECORD_STEPS is 0; another value than 0 and 1 is an
// error of the first step. It may be called at any time: the call is for steps that begin later. Thread-safe.
COHORT_EXPORT void EnableStepRecording(bool enabled);
COHORT_EXPORT bool StepRecordingEnabled();

// Says how devices choose the algorithms of their libraries for matrix products and convolutions. If it is disabled,
// the choice comes from tables and from the libraries' guesses, so that equal programs give the same bits. If it is
// enabled, the candidates for each new product or convolution are run and timed when it is first used, and the process
// keeps the fastest; another process may choose another one. It is disabled at the start, unless the environment
// variable COHORT_AUTOTUNE is 1 (not 0). It may be called at any time: what has been chosen already stays. Thread-safe.
COHORT_EXPORT void EnableAutotune(bool enabled);
COHORT_EXPORT bool AutotuneEnabled();
// Sets the file with a table of algorithms, which is asked before anything is timed or guessed. If autotune is enabled,
// the file is made if it does not exist, and gets a line for each new choice. So later processes that read it choose
// the same. "" means that there is none, which is so at the start, unless the environment variable
// COHORT_AUTOTUNE_TABLE names one. Call it before the first product or convolution: what has been chosen already stays.
// A file that cannot be read, or that has a bad line, is an error of the first step that needs it. Thread-safe.
COHORT_EXPORT void SetAutotuneTable(const std::string& path);
COHORT_EXPORT std::string AutotuneTable();

}  // namespace cohort::config
