// Cards for a whole program: a program that links this object finds fake cards when it looks for GPUs, as it would find
// real ones. The environment variable COHORT_FAKE_CARDS says how many (2). CUDA_VISIBLE_DEVICES
// hides cards, also if the program itself sets it before it looks. For tests only.
#include <cstdlib>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/fake_blas.h"
#include "cohort/backends/cuda/fake/fake_dnn.h"
#include "cohort/backends/cuda/fake/fake_driver.h"
#include "cohort/backends/cuda/fake/process_nccl.h"
#include "cohort/backends/register.h"

namespace cohort::cuda {
namespace {

// Runs before the constructors of other sources, because they register the backends, which look for a driver.
__attribute__((constructor(101))) void InstallFakeCards() {
  const char* cards = std::getenv("COHORT_FAKE_CARDS");
  FakeDriverOptions options;
  options.cards = cards == nullptr ? 2 : std::atoi(cards);
  options.heeds_visible_devices = true;
  auto* driver = new FakeDriver(options);  // lives as long as the process
  InstallDriver(driver);
  InstallBlas(new FakeBlas(*driver));
  InstallDnn(new FakeDnn(*driver));
  InstallNccl(new ProcessNccl(*driver));
}

// In a build without CUDA, RegisterBackends leaves this backend out.
const bool kRegistered = [] {
  RegisterBackends();
  const CudaBackend& backend = CudaBackend::Get();
  if (BackendRegistry::Global().Find(backend.type()) != nullptr) return true;
  config::DeviceConfig::Global().AddSource(ListCards);
  BackendRegistry::Global().Register(backend);
  backend.RegisterKernels(KernelRegistry::Global());
  return true;
}();

}  // namespace
}  // namespace cohort::cuda
