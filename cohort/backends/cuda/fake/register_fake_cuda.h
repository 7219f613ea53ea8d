// RegisterGpusForTests and RegisterFakeCuda: devices of type "GPU" for test suites, on the fake driver or on a card.
// For tests only.
#pragma once

#include "cohort/backends/cuda/fake/fake_driver.h"
#include "cohort/backends/cuda/fake/fake_nccl.h"
#include "cohort/device/kernel.h"

namespace cohort::cuda {

// Installs a fake driver with this many cards, and fakes of the libraries for products and convolutions, and registers
// the CUDA backend. From then on device_count {"GPU", n} makes such devices, by turns on the cards. Nodes are not
// placed on them unless they ask for it. The first call decides how many cards there are. Returns the driver, which
// lives as long as the process. If TestsRunOnCard, nothing is installed, so that the process's devices stay those of
// the cards; only what a test does with the returned driver itself is done by the fake. Thread-safe.
FakeDriver& RegisterFakeCuda(int cards = 2);
// Returns the fake library of collectives that RegisterFakeCuda has installed.
FakeNccl& InstalledFakeNccl();

// Calls RegisterFakeCuda. But if the environment variable COHORT_TEST_CARD is "1" (./dev test gpu), the devices are
// those of the machine's cards, by turns. Throws FailedPreconditionError then if there is no card, with the reason.
void RegisterGpusForTests();
// Returns whether RegisterGpusForTests makes devices of the machine's cards.
bool TestsRunOnCard();

// Gives each op that has a kernel for the CPU and none for GPUs, such as an op of a test, a kernel that computes on the
// host (kernels/host_fallback.h).
void RegisterFallbacksOfTests(KernelRegistry& registry);

}  // namespace cohort::cuda
