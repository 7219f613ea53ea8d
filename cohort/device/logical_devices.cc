// Keeps one entry for each physical device: whether it is visible, and how many logical devices share it. Every Set
// function first checks that nothing has used devices yet (Fix).
#include "cohort/device/logical_devices.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device_config.h"
#include "cohort/device/memory/memory_use.h"
#include "cohort/graph/device_name.h"

namespace cohort::config {

const PhysicalDevice& PhysicalDeviceList::operator[](size_t i) const {
  if (i < size()) return data()[i];
  std::vector<std::string> names;
  for (const PhysicalDevice& device : *this) names.push_back(device.name);
  const std::string of_type = device_type_.empty() ? "" : StrCat(" of type ", device_type_);
  throw InvalidArgumentError(
      StrCat("[config] expected the number of a device", of_type, ", from 0 on; got ", i, "; this machine has ",
             names.empty() ? StrCat("no device", of_type, "; the log says why") : StrJoin(names, ", ")));
}

PhysicalDeviceList ListPhysicalDevices(const std::string& device_type) {
  return {DeviceConfig::Global().ListPhysical(device_type), device_type};
}
std::vector<LogicalDevice> ListLogicalDevices(const std::string& device_type) {
  return DeviceConfig::Global().ListLogical(device_type);
}
void SetVisibleDevices(const std::vector<PhysicalDevice>& devices, const std::string& device_type) {
  DeviceConfig::Global().SetVisible(devices, device_type);
}
void SetLogicalDevices(const PhysicalDevice& device, int count) { DeviceConfig::Global().SetLogical(device, count); }
void SetLogicalDeviceConfiguration(const PhysicalDevice& device,
                                   const std::vector<LogicalDeviceConfiguration>& logical_devices) {
  DeviceConfig::Global().SetLogical(device, logical_devices);
}
DeviceDetails GetDeviceDetails(const PhysicalDevice& device) { return DeviceConfig::Global().Details(device); }
void SetMemoryGrowth(const PhysicalDevice& device, bool enable) {
  DeviceConfig::Global().SetMemoryGrowth(device, enable);
}

namespace {

// Returns the counter of the device, or null if the device exists but nothing has used it yet.
MemoryUse* UseOf(const std::string& device, const char* call) {
  const DeviceName name = DeviceName::Parse(device);
  if (!name.type || !name.id) {
    throw InvalidArgumentError(
        StrCat("[config] ", call, " expected the name of one device (TYPE:NUMBER); got '", device, "'"));
  }
  if (MemoryUse* use = MemoryUse::Find(StrCat(*name.type, ":", *name.id))) return use;
  const std::vector<LogicalSetting> of_type = DeviceConfig::Global().Logical(*name.type);
  const auto id = static_cast<size_t>(*name.id);
  if (id >= of_type.size()) {
    throw InvalidArgumentError(StrCat("[config] ", call, " expected a device of this program; got '", device,
                                      "'; there are ", of_type.size(), " of type ", *name.type));
  }
  if (DeviceConfig::Global().Details(of_type[id].physical).memory_bytes == 0) {
    throw InvalidArgumentError(StrCat("[config] ", call, " expected a device with memory of its own; got '", device,
                                      "', whose memory is the host's"));
  }
  return nullptr;
}

std::atomic<bool> tensor_float_32{true};

// Each of the variables is read once, at the first use.
std::string VariableOr(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// Returns whether the variable is 1, or `otherwise` if it is not set or empty. Throws InvalidArgumentError if it has
// another value.
bool FlagOr(const char* name, bool otherwise) {
  const std::string value = VariableOr(name, "");
  if (value == "0" || value == "1") return value == "1";
  if (value.empty()) return otherwise;
  throw InvalidArgumentError(StrCat("[config] expected 1 or 0 in ", name, "; got '", value, "'"));
}

std::atomic<bool>& StepRecording() {
  static std::atomic<bool> enabled{FlagOr("COHORT_RECORD_STEPS", true)};
  return enabled;
}

std::atomic<bool>& Autotune() {
  static std::atomic<bool> enabled{FlagOr("COHORT_AUTOTUNE", false)};
  return enabled;
}

struct TablePath {
  Mutex mu;
  std::string path COHORT_GUARDED_BY(mu) = VariableOr("COHORT_AUTOTUNE_TABLE", "");
};
TablePath& PathOfTable() {
  static auto* const path = new TablePath;
  return *path;
}

}  // namespace

MemoryInfo GetMemoryInfo(const std::string& device) {
  const MemoryUse* use = UseOf(device, "GetMemoryInfo");
  if (use == nullptr) return {};
  return {static_cast<int64_t>(use->current()), static_cast<int64_t>(use->peak())};
}
void ResetMemoryStats(const std::string& device) {
  if (MemoryUse* use = UseOf(device, "ResetMemoryStats")) use->ResetPeak();
}

void EnableTensorFloat32Execution(bool enabled) { tensor_float_32.store(enabled); }
bool TensorFloat32ExecutionEnabled() { return tensor_float_32.load(); }

void EnableStepRecording(bool enabled) { StepRecording().store(enabled); }
bool StepRecordingEnabled() { return StepRecording().load(std::memory_order_relaxed); }

void EnableAutotune(bool enabled) { Autotune().store(enabled); }
bool AutotuneEnabled() { return Autotune().load(std::memory_order_relaxed); }
void SetAutotuneTable(const std::string& path) {
  TablePath& table = PathOfTable();
  MutexLock lock(table.mu);
  table.path = path;
}
std::string AutotuneTable() {
  TablePath& table = PathOfTable();
  MutexLock lock(table.mu);
  return table.path;
}

}  // namespace cohort::config
