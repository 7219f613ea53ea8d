#include "examples/devices.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace examples {
namespace {

using namespace cohort;

// Returns "/device:GPU:0 (the name of the card)" for a device of this process; the name is left out if it has none.
std::string DeviceText(const std::string& device) {
  const size_t at = device.rfind("/device:");
  const std::string local = at == std::string::npos ? device : device.substr(at);
  const std::string type = local.substr(8, local.find(':', 8) - 8);
  std::string name;  // of all physical devices of the type, if they are alike
  for (const config::PhysicalDevice& physical : config::ListPhysicalDevices(type)) {
    const std::string own = config::GetDeviceDetails(physical).device_name;
    if (!name.empty() && own != name) return local;
    name = own;
  }
  if (!name.empty()) return local + " (" + name + ")";
  return local;
}

}  // namespace

std::string OneTrainingDevice() {
  const std::vector<config::LogicalDevice> gpus = config::ListLogicalDevices("GPU");
  return gpus.empty() ? "/device:CPU:0" : gpus.front().name;
}

int UseDevicesForReplicas(int replicas) {
  const config::PhysicalDeviceList gpus = config::ListPhysicalDevices("GPU");
  if (gpus.empty()) {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int count = replicas > 0 ? replicas : cores;
    config::SetLogicalDevices(config::ListPhysicalDevices("CPU")[0], count);
    return count;
  }
  const int cards = static_cast<int>(gpus.size());
  if (replicas == 0) return cards;
  if (replicas < cards) config::SetVisibleDevices({gpus.begin(), gpus.begin() + replicas}, "GPU");
  if (replicas > cards) config::SetLogicalDevices(gpus[0], replicas - cards + 1);
  return replicas;
}

std::string DevicesText(const distribute::Strategy& strategy) {
  const int count = strategy.num_replicas_in_sync();
  std::string text = std::to_string(count) + (count == 1 ? " replica" : " replicas");
  const std::vector<std::string>& devices = strategy.devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    text += i == 0 ? " on " : i + 1 == devices.size() ? " and " : ", ";
    text += DeviceText(devices[i]);
  }
  if (strategy.num_workers() > 1) text += " of each of " + std::to_string(strategy.num_workers()) + " workers";
  if (!strategy.has_copies() && strategy.DeviceOfCopy(0) != devices.front()) {
    text += ", variables on " + DeviceText(strategy.DeviceOfCopy(0));
  }
  return text;
}

}  // namespace examples
