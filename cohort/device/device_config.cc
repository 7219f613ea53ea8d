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

void DeviceConfig::AddSource(Source source) {
  MutexLock lock(source_mu_);
  sources_.push_back(std::move(source));
  has_sources_ = true;
}

void DeviceConfig::Discover() const {
  if (!has_sources_) return;
  MutexLock source_lock(source_mu_);
  for (const Source& source : sources_) {
    for (const auto& [device, details] : source()) {
      MutexLock lock(mu_);
      entries_.push_back({.device = device, .details = details});
    }
  }
  sources_.clear();
  has_sources_ = false;
}

void DeviceConfig::AddPhysical(const PhysicalDevice& device, const DeviceDetails& details) {
  Discover();
  MutexLock lock(mu_);
  for (const Entry& entry : entries_) {
    if (entry.device.name != device.name) continue;
    throw AlreadyExistsError(StrCat("[config] expected a new physical device; got ", device.name, ", which is known"));
  }
  entries_.push_back({.device = device, .details = details});
}

std::vector<PhysicalDevice> DeviceConfig::ListPhysical(const std::string& device_type) const {
  Discover();
  MutexLock lock(mu_);
  std::vector<PhysicalDevice> devices;
  for (const Entry& entry : entries_) {
    if (IsOf(entry.device, device_type)) devices.push_back(entry.device);
  }
  return devices;
}

std::vector<LogicalDevice> DeviceConfig::ListLogical(const std::string& device_type) {
  Discover();
  Fix("ListLogicalDevices");
  MutexLock lock(mu_);
  std::map<std::string, int> numbers;
  std::vector<LogicalDevice> devices;
  for (const Entry& entry : entries_) {
    if (!entry.visible || !IsOf(entry.device, device_type)) continue;
    const std::string& type = entry.device.device_type;
    for (size_t i = 0; i < entry.count(); ++i) {
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

DeviceConfig::Entry& DeviceConfig::Find(const PhysicalDevice& device, const char* call) const {
  std::vector<std::string> names;
  for (Entry& entry : entries_) {
    if (entry.device == device) return entry;
    names.push_back(entry.device.name);
  }
  throw InvalidArgumentError(StrCat("[config] ", call, " expected one of ", StrJoin(names, ", "), "; got '",
                                    device.name, "' of type '", device.device_type, "'"));
}

void DeviceConfig::SetVisible(const std::vector<PhysicalDevice>& devices, const std::string& device_type) {
  Discover();
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
  Discover();
  MutexLock lock(mu_);
  CheckSettable("Virtual devices", "SetLogicalDevices");
  Entry& entry = Find(device, "SetLogicalDevices");
  if (count < 1) {
    throw InvalidArgumentError(
        StrCat("[config] SetLogicalDevices expected at least one logical device of ", device.name, "; got ", count));
  }
  entry.logical.assign(static_cast<size_t>(count), {});
}

void DeviceConfig::SetLogical(const PhysicalDevice& device,
                              const std::vector<LogicalDeviceConfiguration>& logical_devices) {
  constexpr const char* kCall = "SetLogicalDeviceConfiguration";
  constexpr int64_t kUnits = int64_t{1} << 20;
  Discover();
  MutexLock lock(mu_);
  CheckSettable("Virtual devices", kCall);
  Entry& entry = Find(device, kCall);
  if (logical_devices.empty()) {
    throw InvalidArgumentError(
        StrCat("[config] ", kCall, " expected at least one logical device of ", device.name, "; got none"));
  }
  int64_t sum = 0;
  for (const LogicalDeviceConfiguration& logical : logical_devices) {
    const int64_t most = entry.details.memory_bytes / kUnits;
    if (logical.memory_limit < 0 || (logical.memory_limit > 0 && most > 0 && logical.memory_limit > most - sum)) {
      throw InvalidArgumentError(StrCat("[config] ", kCall,
                                        " expected memory limits from 0 that together are at most the ", most,
                                        " MB of ", device.name, "; got ", logical.memory_limit, " MB",
                                        sum > 0 ? StrCat(" after ", sum, " MB of others") : std::string()));
    }
    if (logical.memory_limit > 0 && entry.details.memory_bytes == 0) {
      throw InvalidArgumentError(StrCat("[config] ", kCall, " expected no memory limit for ", device.name,
                                        ", whose memory is the host's; got ", logical.memory_limit, " MB"));
    }
    sum += logical.memory_limit;
  }
  entry.logical = logical_devices;
}

DeviceDetails DeviceConfig::Details(const PhysicalDevice& device) const {
  Discover();
  MutexLock lock(mu_);
  return Find(device, "GetDeviceDetails").details;
}

void DeviceConfig::SetMemoryGrowth(const PhysicalDevice& device, bool enable) {
  Discover();
  MutexLock lock(mu_);
  CheckSettable("Physical devices", "SetMemoryGrowth");
  Entry& entry = Find(device, "SetMemoryGrowth");
  if (entry.details.memory_bytes == 0) {
    throw InvalidArgumentError(StrCat("[config] SetMemoryGrowth expected a device with memory of its own; got ",
                                      device.name, ", whose memory is the host's"));
  }
  entry.memory_growth = enable;
}

std::vector<LogicalSetting> DeviceConfig::Logical(const std::string& device_type) const {
  Discover();
  MutexLock lock(mu_);
  std::vector<LogicalSetting> settings;
  for (const Entry& entry : entries_) {
    if (!entry.visible || entry.device.device_type != device_type) continue;
    for (size_t i = 0; i < entry.count(); ++i) {
      const int64_t limit = entry.logical.empty() ? 0 : entry.logical[i].memory_limit;
      settings.push_back({entry.device, limit << 20, entry.memory_growth});
    }
  }
  return settings;
}

void DeviceConfig::Fix(const std::string& user) {
  MutexLock lock(mu_);
  if (fixed_by_.empty()) fixed_by_ = user;
}

std::vector<PhysicalDevice> DeviceConfig::Visible(const std::string& device_type) const {
  Discover();
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
  Discover();
  MutexLock lock(mu_);
  int count = 0;
  for (const Entry& entry : entries_) {
    if (entry.visible && entry.device.device_type == device_type) count += static_cast<int>(entry.count());
  }
  return count;
}

std::string DeviceConfig::ReplicaType() const {
  Discover();
  MutexLock lock(mu_);
  for (const Entry& entry : entries_) {
    if (entry.visible && entry.device.device_type != kHostDeviceType) return entry.device.device_type;
  }
  return kHostDeviceType;
}

bool DeviceConfig::IsSet(const std::string& device_type) const {
  Discover();
  MutexLock lock(mu_);
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.device.device_type == device_type && !entry.logical.empty();
  });
}

}  // namespace cohort::config
