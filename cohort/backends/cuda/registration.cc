#include "cohort/backends/cuda/registration.h"

#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

// The physical devices of a machine that has no driver: none, and a line of the log that says so.
std::vector<std::pair<config::PhysicalDevice, config::DeviceDetails>> ListNoCards() {
  std::string why;
  if (FindDriver(&why) == nullptr) LogInfo("cuda", "no GPU is used, and all work is done on the CPU: ", why);
  return {};
}

}  // namespace

void RegisterCudaBackend() {
  // The driver is asked at the first use of devices, and not before main, where this runs.
  if (LookForDriver() == DriverSigns::kNone) return config::DeviceConfig::Global().AddSource(ListNoCards);
  config::DeviceConfig::Global().AddSource(ListCards);
  const CudaBackend& backend = CudaBackend::Get();
  BackendRegistry::Global().Register(backend);
  backend.RegisterKernels(KernelRegistry::Global());
}

}  // namespace cohort::cuda
