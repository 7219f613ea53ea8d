// Keeps one entry for each physical device: whether it is visible, and how many logical devices share it. Every Set
// function first checks that nothing has used devices yet (Fix).
#include "cohort/device/logical_devices.h"

#include "cohort/device/device_config.h"

namespace cohort::config {

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
