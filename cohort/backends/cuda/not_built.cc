// RegisterCudaBackend of a build without CUDA. Its programs contain nothing of the backend; only tests link it.
#include "cohort/backends/cuda/not_built.h"

#include <utility>
#include <vector>

#include "cohort/backends/cuda/registration.h"
#include "cohort/core/logging.h"
#include "cohort/device/device_config.h"

namespace cohort::cuda {

void RegisterCudaBackend() {
  config::DeviceConfig::Global().AddSource([] {
    LogInfo("cuda", "no GPU is used, and all work is done on the CPU: ", kNotBuilt);
    return std::vector<std::pair<config::PhysicalDevice, config::DeviceDetails>>();
  });
}

}  // namespace cohort::cuda
