// RegisterGpusForTests and RegisterFakeCuda: devices of type "GPU" for test suites, on the fake driver or on a card.
// For tests only.
#pragma once

#include <memory>

#include "cohort/backends/cuda/fake/fake_driver.h"
#include "cohort/backends/cuda/fake/fake_nccl.h"
#include "cohort/backends/cuda/fake/needs_fake.h"
#include "cohort/device/device.h"
#include "cohort/device/kernel.h"

namespace cohort::cuda {

inline constexpr int kFakeCards = 2;

// Installs a fake driver with this many cards, and fakes of the libraries for products and convolutions, and registers
// the CUDA backend. From then on device_count {"GPU", n} makes such devices, by turns on the cards. Nodes are not
// placed on them unless they ask for it. The first call decides how many cards there are. Returns the driver, which
// lives as long as the process. If TestsRunOnCard, nothing is installed, so that the process's devices stay those of
// the cards; only what a test does with the returned driver itself is done by the fake. Thread-safe.
FakeDriver& RegisterFakeCuda(int cards = kFakeCards);
// Returns the fake library of collectives of RegisterFakeCuda. If TestsRunOnCard, it is not installed.
FakeNccl& InstalledFakeNccl();

// What tests have: a fake driver, or that of the machine's cards, and counts of what it is asked.
struct GpusOfTests {
  Driver& driver;
  const DriverCounts& counts;
};

// Calls RegisterFakeCuda. But if TestsRunOnCard, the devices are those of the machine's cards, by turns, and products
// of float32 are not rounded to TF32, because tests compare them with those of the CPU. Throws
// FailedPreconditionError then if there is no card, with the reason.
GpusOfTests RegisterGpusForTests(int fake_cards = kFakeCards);
// Calls RegisterGpusForTests, and makes the device /device:GPU:0 of a task of its own.
std::unique_ptr<Device> MakeGpuForTests();
// Returns the driver of the machine's cards if tests run on them, and otherwise the given one. For tests that have a
// fake driver of their own.
Driver& CardOr(FakeDriver& fake);

// Gives each op that has a kernel for the CPU and none for GPUs, such as an op of a test, a kernel that computes on the
// host (kernels/host_fallback.h).
void RegisterFallbacksOfTests(KernelRegistry& registry);

}  // namespace cohort::cuda
