#include "cohort/backends/register.h"

#include <mutex>

#include "cohort/backends/cpu/cpu_backend.h"
#include "cohort/backends/cuda/registration.h"

namespace cohort {
namespace {

void Add(const Backend& backend) {
  BackendRegistry::Global().Register(backend);
  backend.RegisterKernels(KernelRegistry::Global());
}

}  // namespace

void RegisterBackends() {
  static std::once_flag once;
  std::call_once(once, [] {
    Add(CpuBackend::Get());
    AddShortDeviceType("GPU");  // a name of TensorFlow's; soft placement may replace it
    cuda::RegisterCudaBackend();
  });
}

}  // namespace cohort
