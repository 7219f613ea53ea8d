// config: which devices of this machine a program uses, with the names of TensorFlow's tf.config. The Set functions may
// be called in any order before devices are first used - by a Session, a Server, a strategy or ListLogicalDevices;
// later calls throw FailedPreconditionError that names the first use. What is set here counts for all of the process,
// except where a session's or server's device_count says something else.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"

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

// `device_type` "": of all types. The processors of the machine are one CPU.
std::vector<PhysicalDevice> ListPhysicalDevices(const std::string& device_type = "");
// Fixes the devices.
std::vector<LogicalDevice> ListLogicalDevices(const std::string& device_type = "");
// Others of the type are not used. Throws InvalidArgumentError for a device that there is not, and where no CPU is
// left.
void SetVisibleDevices(const std::vector<PhysicalDevice>& devices, const std::string& device_type = "");
// `count` logical devices share the physical one. Throws InvalidArgumentError for a count below 1.
void SetLogicalDevices(const PhysicalDevice& device, int count);
// Has an effect on GPUs only; there are none.
void SetMemoryGrowth(const PhysicalDevice& device, bool enable);

// What is behind the functions. Thread-safe.
class DeviceConfig {
 public:
  // The process's.
  static DeviceConfig& Global();

  std::vector<PhysicalDevice> ListPhysical(const std::string& device_type) const;
  std::vector<LogicalDevice> ListLogical(const std::string& device_type);
  void SetVisible(const std::vector<PhysicalDevice>& devices, const std::string& device_type);
  void SetLogical(const PhysicalDevice& device, int count);
  void SetMemoryGrowth(const PhysicalDevice& device, bool enable);
  // From now on nothing can be set; the first `user` ("the first session") is named.
  void Fix(const std::string& user);
  // Logical devices of a type; 0 where there are none.
  int Count(const std::string& device_type) const;
  // Whether SetLogical was called for the type.
  bool IsSet(const std::string& device_type) const;

 private:
  void CheckSettable(const char* call) const REQUIRES(mu_);
  static void CheckIsThere(const PhysicalDevice& device, const char* call);

  mutable Mutex mu_;
  std::map<std::string, int> counts_ GUARDED_BY(mu_);
  std::string fixed_by_ GUARDED_BY(mu_);
};

}  // namespace cohort::config
