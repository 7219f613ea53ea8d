#include "cohort/device/device_factory.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/logical_devices.h"

namespace cohort {

DeviceFactories& DeviceFactories::Global() {
  static auto* const factories = new DeviceFactories;
  return *factories;
}

DeviceFactories::DeviceFactories(config::DeviceConfig& config) : config_(config) {
  Register("CPU", [](const DeviceRequest& request) {
    return MakeCpuDevices(request.task, request.count, request.intra_op_threads, request.resources);
  });
}

void DeviceFactories::Register(const std::string& type, DeviceFactory factory) {
  if (!factories_.emplace(type, std::move(factory)).second) {
    throw AlreadyExistsError(StrCat("[device] there is a factory for device type ", type, " already"));
  }
}

std::vector<std::unique_ptr<Device>> DeviceFactories::Make(const DeviceName& task,
                                                           const std::map<std::string, int>& device_count,
                                                           int intra_op_threads,
                                                           const std::shared_ptr<TaskResources>& resources,
                                                           const char* component) const {
  config_.Fix(StrCat("the first ", component));
  const auto count_of = [&](const std::string& type) {
    if (config_.IsHidden(type)) return 0;
    const auto wanted = device_count.find(type);
    return wanted != device_count.end() ? wanted->second : config_.Count(type);
  };
  const int cpus = count_of("CPU");
  if (cpus < 1) {
    throw InvalidArgumentError(StrCat("[", component, "] device_count of CPU must be at least 1; got ", cpus));
  }
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = intra_op_threads > 0 ? intra_op_threads : std::max(1, cores / cpus);
  std::vector<std::unique_ptr<Device>> devices;
  for (const auto& [type, factory] : factories_) {
    if (count_of(type) <= 0) continue;
    auto more = factory({task, count_of(type), threads, resources, config_.Visible(type)});
    std::move(more.begin(), more.end(), std::back_inserter(devices));
  }
  return devices;
}

}  // namespace cohort
