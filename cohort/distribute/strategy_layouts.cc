#include "cohort/distribute/strategy_layouts.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device_config.h"

namespace cohort::distribute {

// Names in one form, so that equal devices are equal texts.
std::vector<std::string> LocalDevices(const std::vector<std::string>& given) {
  std::vector<std::string> devices;
  for (const std::string& device : given) {
    const DeviceName name = DeviceName::Parse(device);
    if (!name.type || !name.id) {
      throw InvalidArgumentError(StrCat("[distribute] expected devices with a type and a number, as \"/",
                                        kHostDeviceType, ":0\"; got '", device, "'"));
    }
    if (name.job && *name.job != "localhost") {
      throw InvalidArgumentError(StrCat("[distribute] expected devices of this process; got '", device,
                                        "': MultiWorkerMirrored() trains on several processes"));
    }
    DeviceName here;
    here.type = name.type;
    here.id = name.id;
    devices.push_back(here.ToString());
  }
  if (!devices.empty()) return devices;
  for (const config::LogicalDevice& device : config::ListLogicalDevices(config::DeviceConfig::Global().ReplicaType())) {
    devices.push_back(device.name);
  }
  return devices;
}

std::vector<std::string> DevicesOf(const std::string& task, const std::string& type, int replicas) {
  std::vector<std::string> devices;
  devices.reserve(static_cast<size_t>(replicas));
  for (int i = 0; i < replicas; ++i) devices.push_back(StrCat(task, "/device:", type, ":", i));
  return devices;
}

StrategyLayout LayoutOf(const char* name, std::vector<std::string> devices, const CommunicationOptions& communication) {
  StrategyLayout layout;
  layout.name = name;
  layout.devices = std::move(devices);
  layout.members = layout.devices;
  layout.communication = communication;
  return layout;
}

std::string Quoted(const std::vector<std::string>& names) {
  return StrCat("('", StrJoin(names, "', '"), names.size() == 1 ? "',)" : "')");
}

}  // namespace cohort::distribute
