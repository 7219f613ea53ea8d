// DeviceFactories: how the devices of a task are made, by type.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/device/device.h"
#include "cohort/device/logical_devices.h"

namespace cohort {

struct DeviceRequest {
  DeviceName task;
  int count = 0;             // devices of the type
  int intra_op_threads = 1;  // of each
  std::shared_ptr<TaskResources> resources;
  // The physical devices that the logical ones share, in order; empty if the type has not announced any
  // (config::DeviceConfig::AddPhysical).
  std::vector<config::PhysicalDevice> physical;
};
using DeviceFactory = std::function<std::vector<std::unique_ptr<Device>>(const DeviceRequest&)>;

// Filled once at start, read-only afterwards. CPU is always there.
class DeviceFactories {
 public:
  static DeviceFactories& Global();
  // `config` says how many devices there are of each type, and has to outlive this.
  explicit DeviceFactories(config::DeviceConfig& config = config::DeviceConfig::Global());
  void Register(const std::string& type, DeviceFactory factory);
  // All devices of `task`: as many of each type as `device_count` says, else as config:: has it (one CPU). As in
  // TensorFlow a type that there is not counts for nothing, and neither does a type that config:: hides.
  // `intra_op_threads` 0: the cores, divided by the CPUs.
  // Throws InvalidArgumentError, prefixed with `component`, where no CPU is wanted.
  std::vector<std::unique_ptr<Device>> Make(const DeviceName& task, const std::map<std::string, int>& device_count,
                                            int intra_op_threads, const std::shared_ptr<TaskResources>& resources,
                                            const char* component) const;

 private:
  config::DeviceConfig& config_;
  std::map<std::string, DeviceFactory> factories_;
};

}  // namespace cohort
