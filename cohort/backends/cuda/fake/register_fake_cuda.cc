#include "cohort/backends/cuda/fake/register_fake_cuda.h"

#include <string>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/counted_driver.h"
#include "cohort/backends/cuda/fake/fake_blas.h"
#include "cohort/backends/cuda/fake/fake_dnn.h"
#include "cohort/backends/cuda/fake/fake_nccl.h"
#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/register.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/logical_devices.h"

namespace cohort::cuda {
namespace {

// What RegisterFakeCuda makes.
struct Fakes {
  FakeDriver* driver;
  FakeNccl* nccl;
};

const Fakes& MakeFakes(int cards) {
  static const Fakes fakes = [cards] {
    RegisterBackends();  // before the driver is there
    FakeDriverOptions options;
    options.cards = cards;
    auto* made = new FakeDriver(options);
    const Fakes result{made, new FakeNccl(*made)};
    if (TestsRunOnCard()) return result;
    InstallDriver(made);
    InstallBlas(new FakeBlas(*made));
    InstallDnn(new FakeDnn(*made));
    InstallNccl(result.nccl);
    CudaBackend& backend = CudaBackend::Get();
    backend.set_takes_unplaced_nodes(false);
    if (BackendRegistry::Global().Find(backend.type()) == nullptr) {  // the machine has no card
      BackendRegistry::Global().Register(backend);
      backend.RegisterKernels(KernelRegistry::Global());
    }
    return result;
  }();
  return fakes;
}

}  // namespace

FakeDriver& RegisterFakeCuda(int cards) { return *MakeFakes(cards).driver; }

GpusOfTests RegisterGpusForTests(int fake_cards) {
  if (!TestsRunOnCard()) {
    FakeDriver& driver = RegisterFakeCuda(fake_cards);
    return {driver, driver.control()};
  }
  static auto* const counts = new DriverCounts;
  static CountedDriver* const counted = [] {
    RegisterBackends();
    std::string why;
    Driver* const driver = FindDriver(&why);
    if (driver == nullptr) {
      throw FailedPreconditionError(StrCat("[cuda] expected a card, because COHORT_TEST_CARD is 1; got none: ", why));
    }
    auto* made = new CountedDriver(*driver, *counts);
    InstallDriver(made);
    CudaBackend::Get().set_takes_unplaced_nodes(false);
    config::EnableTensorFloat32Execution(false);
    return made;
  }();
  return {*counted, *counts};
}

std::unique_ptr<Device> MakeGpuForTests() {
  RegisterGpusForTests();
  DeviceRequest request;
  request.task = DeviceName::Parse("/job:localhost/replica:0/task:0");
  request.count = 1;
  request.resources = std::make_shared<TaskResources>();
  return std::move(CudaBackend::Get().MakeDevices(request)[0]);
}

Driver& CardOr(FakeDriver& fake) { return TestsRunOnCard() ? RegisterGpusForTests().driver : fake; }

FakeNccl& InstalledFakeNccl() { return *MakeFakes(kFakeCards).nccl; }

void RegisterFallbacksOfTests(KernelRegistry& registry) {
  for (const std::string& op : registry.OpsOn(kHostDeviceType)) {
    if (registry.Has(op, kGpu)) continue;
    registry.Register(op, kGpu, [&registry](const KernelConstruction& c) { return MakeHostFallback(registry, c); });
  }
}

}  // namespace cohort::cuda
