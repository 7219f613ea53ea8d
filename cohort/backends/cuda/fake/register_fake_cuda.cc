#include "cohort/backends/cuda/fake/register_fake_cuda.h"

#include <cstdlib>
#include <string>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/fake_blas.h"
#include "cohort/backends/cuda/fake/fake_dnn.h"
#include "cohort/backends/cuda/fake/fake_nccl.h"
#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/register.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {

bool TestsRunOnCard() {
  const char* on_card = std::getenv("COHORT_TEST_CARD");
  return on_card != nullptr && std::string(on_card) == "1";
}

FakeDriver& RegisterFakeCuda(int cards) {
  static FakeDriver* const driver = [cards] {
    RegisterBackends();  // before the driver is there
    FakeDriverOptions options;
    options.cards = cards;
    auto* made = new FakeDriver(options);
    if (TestsRunOnCard()) return made;
    InstallDriver(made);
    InstallBlas(new FakeBlas(*made));
    InstallDnn(new FakeDnn(*made));
    InstallNccl(new FakeNccl(*made));
    CudaBackend& backend = CudaBackend::Get();
    backend.set_takes_unplaced_nodes(false);
    if (BackendRegistry::Global().Find(backend.type()) == nullptr) {  // the machine has no card
      BackendRegistry::Global().Register(backend);
      backend.RegisterKernels(KernelRegistry::Global());
    }
    return made;
  }();
  return *driver;
}

void RegisterGpusForTests() {
  if (!TestsRunOnCard()) {
    RegisterFakeCuda();
    return;
  }
  RegisterBackends();
  std::string why;
  if (FindDriver(&why) == nullptr) {
    throw FailedPreconditionError(StrCat("[cuda] expected a card, because COHORT_TEST_CARD is 1; got none: ", why));
  }
  CudaBackend::Get().set_takes_unplaced_nodes(false);
}

FakeNccl& InstalledFakeNccl() {
  RegisterFakeCuda();
  return static_cast<FakeNccl&>(FindNccl());
}

void RegisterFallbacksOfTests(KernelRegistry& registry) {
  for (const std::string& op : registry.OpsOn(kHostDeviceType)) {
    if (registry.Has(op, kGpu)) continue;
    registry.Register(op, kGpu, [&registry](const KernelConstruction& c) { return MakeHostFallback(registry, c); });
  }
}

}  // namespace cohort::cuda
