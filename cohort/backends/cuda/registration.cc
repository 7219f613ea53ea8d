#include "cohort/backends/cuda/registration.h"

#include "cohort/backends/cuda/cuda_backend.h"

namespace cohort::cuda {

void RegisterCudaBackend() {
  const DriverSigns signs = LookForDriver();
  // The driver is asked at the first use of devices, and not before main, where this runs.
  config::DeviceConfig::Global().AddSource(ListCards);
  if (signs == DriverSigns::kNone) return;
  const CudaBackend& backend = CudaBackend::Get();
  BackendRegistry::Global().Register(backend);
  backend.RegisterKernels(KernelRegistry::Global());
}

}  // namespace cohort::cuda
