// CardsTest: the base of the tests that run sessions on GPUs, of a fake driver or of the machine. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <chrono>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/session.h"

namespace cohort::cuda {

class CardsTest : public ::testing::Test {
 protected:
  static constexpr int kCards = 3;

  static void SetUpTestSuite() {
    RegisterOps();
    const GpusOfTests gpus = RegisterGpusForTests(kCards);
    driver_ = &gpus.driver;
    counts_ = &gpus.counts;
    RegisterRuntimeKernels(KernelRegistry::Global());
  }
  // Of a session with this many GPUs. If the machine has fewer cards, several are on one.
  static SessionConfig Config() {
    SessionConfig config;
    config.device_count[CudaBackend::Get().type()] = kCards;
    config.operation_timeout = std::chrono::minutes(1);
    return config;
  }
  // Faults and delays of the fake driver, for tests that begin with COHORT_NEEDS_FAKE.
  static FakeControl& control() { return RegisterFakeCuda(kCards).control(); }

  static inline Driver* driver_ = nullptr;
  static inline const DriverCounts* counts_ = nullptr;
};

}  // namespace cohort::cuda
