#include "cohort/device/logical_devices.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"

namespace cohort::config {
namespace {

// The processors of the machine are one device.
std::vector<PhysicalDevice> AllPhysical() {
  return {{StrCat("/physical_device:", kHostDeviceType, ":0"), kHostDeviceType}};
}

std::string Names(const std::vector<PhysicalDevice>& devices) {
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const PhysicalDevice& device : devices) names.push_back(device.name);
  return StrJoin(names, ", ");
}

}  // namespace

DeviceConfig& DeviceConfig::Global() {
  static auto* const config = new DeviceConfig;
  return *config;
}

std::vector<PhysicalDevice> DeviceConfig::ListPhysical(const std::string& device_type) const {
  std::vector<PhysicalDevice> devices = AllPhysical();
  const auto other = [&](const PhysicalDevice& device) {
    return !device_type.empty() && device.device_type != device_type;
  };
  devices.erase(std::remove_if(devices.begin(), devices.end(), other), devices.end());
  return devices;
}

std::vector<LogicalDevice> DeviceConfig::ListLogical(const std::string& device_type) {
  Fix("ListLogicalDevices");
  std::vector<LogicalDevice> devices;
  if (!device_type.empty() && device_type != kHostDeviceType) return devices;
  for (int i = 0; i < Count(kHostDeviceType); ++i)
    devices.push_back({StrCat("/device:", kHostDeviceType, ":", i), kHostDeviceType});
  return devices;
}

void DeviceConfig::CheckSettable(const char* call) const {
  if (fixed_by_.empty()) return;
  throw FailedPreconditionError(StrCat("[config] expected ", call, " before devices are used; ", fixed_by_,
                                       " has fixed them already: call it at the program's start"));
}

void DeviceConfig::CheckIsThere(const PhysicalDevice& device, const char* call) {
  const std::vector<PhysicalDevice> all = AllPhysical();
  if (std::find(all.begin(), all.end(), device) != all.end()) return;
  throw InvalidArgumentError(StrCat("[config] ", call, " expected one of ", Names(all), "; got '", device.name,
                                    "' of type '", device.device_type, "'"));
}

void DeviceConfig::SetVisible(const std::vector<PhysicalDevice>& devices, const std::string& device_type) {
  MutexLock lock(mu_);
  CheckSettable("SetVisibleDevices");
  for (const PhysicalDevice& device : devices) {
    CheckIsThere(device, "SetVisibleDevices");
    if (device_type.empty() || device.device_type == device_type) continue;
    throw InvalidArgumentError(
        StrCat("[config] SetVisibleDevices expected devices of type ", device_type, "; got ", device.name));
  }
  const bool about_cpus = device_type.empty() || device_type == kHostDeviceType;
  if (about_cpus && devices.empty()) {
    throw InvalidArgumentError(StrCat("[config] SetVisibleDevices expected to leave a device of type ", kHostDeviceType,
                                      ", which every program needs"));
  }
}

void DeviceConfig::SetLogical(const PhysicalDevice& device, int count) {
  MutexLock lock(mu_);
  CheckSettable("SetLogicalDevices");
  CheckIsThere(device, "SetLogicalDevices");
  if (count < 1) {
    throw InvalidArgumentError(
        StrCat("[config] SetLogicalDevices expected at least one logical device of ", device.name, "; got ", count));
  }
  counts_[device.device_type] = count;
}

void DeviceConfig::SetMemoryGrowth(const PhysicalDevice& device, bool) {
  MutexLock lock(mu_);
  CheckSettable("SetMemoryGrowth");
  CheckIsThere(device, "SetMemoryGrowth");
  throw InvalidArgumentError(StrCat("[config] SetMemoryGrowth expected a device with memory of its own; got ",
                                    device.name, ", whose memory is the host's, and there is no other"));
}

void DeviceConfig::Fix(const std::string& user) {
  MutexLock lock(mu_);
  if (fixed_by_.empty()) fixed_by_ = user;
}

int DeviceConfig::Count(const std::string& device_type) const {
  MutexLock lock(mu_);
  const auto found = counts_.find(device_type);
  return found != counts_.end() ? found->second : device_type == kHostDeviceType ? 1 : 0;
}

bool DeviceConfig::IsSet(const std::string& device_type) const {
  MutexLock lock(mu_);
  return counts_.count(device_type) > 0;
}

std::vector<PhysicalDevice> ListPhysicalDevices(const std::string& device_type) {
  return DeviceConfig::Global().ListPhysical(device_type);
}
std::vector<LogicalDevice> ListLogicalDevices(const std::string& device_type) {
  return DeviceConfig::Global().ListLogical(device_type);
}
void SetVisibleDevices(const std::vector<PhysicalDevice>& devices, const std::string& device_type) {
  DeviceConfig::Global().SetVisible(devices, device_type);
}
void SetLogicalDevices(const PhysicalDevice& device, int count) { DeviceConfig::Global().SetLogical(device, count); }
void SetMemoryGrowth(const PhysicalDevice& device, bool enable) {
  DeviceConfig::Global().SetMemoryGrowth(device, enable);
}

}  // namespace cohort::config
