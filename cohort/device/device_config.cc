#include "cohort/device/device_config.h"

#include <algorithm>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"

namespace cohort::config {
namespace {

bool IsOf(const PhysicalDevice& device, const std::string& type) { return type.empty() || device.device_type == type; }

}  // namespace

DeviceConfig& DeviceConfig::Global() {
  static auto* const config = new DeviceConfig;
  return *config;
}

DeviceConfig::DeviceConfig()
    : entries_{{.device = {std::string("/physical_device:") + kHostDeviceType + ":0", kHostDeviceType}}} {}

void DeviceConfig::AddPhysical(const PhysicalDevice& device) {
  MutexLock lock(mu_);
  for (const Entry& entry : entries_) {
    if (entry.device.name != device.name) continue;
    throw AlreadyExistsError(StrCat("[config] expected a new physical device; got ", device.name, ", which is known"));
  }
  entries_.push_back({.device = device});
}

std::vector<PhysicalDevice> DeviceConfig::ListPhysical(const std::string& device_type) const {
  MutexLock lock(mu_);
  std::vector<PhysicalDevice> devices;
  for (const Entry& entry : entries_) {
    if (IsOf(entry.device, device_type)) devices.push_back(entry.device);
  }
  return devices;
}

std::vector<LogicalDevice> DeviceConfig::ListLogical(const std::string& device_type) {
  Fix("ListLogicalDevices");
  MutexLock lock(mu_);
  std::map<std::string, int> numbers;
  std::vector<LogicalDevice> devices;
  for (const Entry& entry : entries_) {
    if (!entry.visible || !IsOf(entry.device, device_type)) continue;
    const std::string& type = entry.device.device_type;
    for (int i = 0; i < std::max(1, entry.logical); ++i) {
      devices.push_back({StrCat("/device:", type, ":", numbers[type]++), type});
    }
  }
  return devices;
}

void DeviceConfig::CheckSettable(const char* what, const char* call) const {
  if (fixed_by_.empty()) return;
  throw FailedPreconditionError(StrCat("[config] ", what, " cannot be modified after being initialized: expected ",
                                       call, " before devices are used; ", fixed_by_,
                                       " has fixed them already: call it at the program's start"));
}

DeviceConfig::Entry& DeviceConfig::Find(const PhysicalDevice& device, const char* call) {
  std::vector<std::string> names;
  for (Entry& entry : entries_) {
    if (entry.device == device) return entry;
    names.push_back(entry.device.name);
  }
  throw InvalidArgumentError(StrCat("[config] ", call, " expected one of ", StrJoin(names, ", "), "; got '",
                                    device.name, "' of type '", device.device_type, "'"));
}

void DeviceConfig::SetVisible(const std::vector<PhysicalDevice>& devices, const std::string& device_type) {
  MutexLock lock(mu_);
  CheckSettable("Visible devices", "SetVisibleDevices");
  for (const PhysicalDevice& device : devices) {
    Find(device, "SetVisibleDevices");
    if (IsOf(device, device_type)) continue;
    throw InvalidArgumentError(
        StrCat("[config] SetVisibleDevices expected devices of type ", device_type, "; got ", device.name));
  }
  const auto wanted = [&](const PhysicalDevice& device) {
    return std::find(devices.begin(), devices.end(), device) != devices.end();
  };
  for (const Entry& entry : entries_) {
    if (entry.device.device_type != kHostDeviceType || !IsOf(entry.device, device_type) || wanted(entry.device))
      continue;
    throw InvalidArgumentError(StrCat("[config] SetVisibleDevices expected to leave ", entry.device.name,
                                      ", which every program needs; got a list without it"));
  }
  for (Entry& entry : entries_) {
    if (IsOf(entry.device, device_type)) entry.visible = wanted(entry.device);
  }
}

void DeviceConfig::SetLogical(const PhysicalDevice& device, int count) {
  MutexLock lock(mu_);
  CheckSettable("Virtual devices", "SetLogicalDevices");
  Entry& entry = Find(device, "SetLogicalDevices");
  if (count < 1) {
    throw InvalidArgumentError(
        StrCat("[config] SetLogicalDevices expected at least one logical device of ", device.name, "; got ", count));
  }
  entry.logical = count;
}

void DeviceConfig::SetMemoryGrowth(const PhysicalDevice& device, bool) {
  MutexLock lock(mu_);
  CheckSettable("Physical devices", "SetMemoryGrowth");
  Find(device, "SetMemoryGrowth");
  throw InvalidArgumentError(StrCat("[config] SetMemoryGrowth expected a device with memory of its own; got ",
                                    device.name, ", whose memory is the host's"));
}

void DeviceConfig::Fix(const std::string& user) {
  MutexLock lock(mu_);
  if (fixed_by_.empty()) fixed_by_ = user;
}

std::vector<PhysicalDevice> DeviceConfig::Visible(const std::string& device_type) const {
  MutexLock lock(mu_);
  std::vector<PhysicalDevice> devices;
  for (const Entry& entry : entries_) {
    if (entry.visible && entry.device.device_type == device_type) devices.push_back(entry.device);
  }
  return devices;
}

bool DeviceConfig::IsHidden(const std::string& device_type) const {
  return Visible(device_type).empty() && !ListPhysical(device_type).empty();
}

int DeviceConfig::Count(const std::string& device_type) const {
  MutexLock lock(mu_);
  int count = 0;
  for (const Entry& entry : entries_) {
    if (entry.visible && entry.device.device_type == device_type) count += std::max(1, entry.logical);
  }
  return count;
}

bool DeviceConfig::IsSet(const std::string& device_type) const {
  MutexLock lock(mu_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.device.device_type == device_type && entry.logical > 0; });
}

}  // namespace cohort::config
