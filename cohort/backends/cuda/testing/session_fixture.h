// FakeCardsTest: the base of the tests that run sessions on GPUs of a fake driver. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <chrono>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/session.h"

namespace cohort::cuda {

class FakeCardsTest : public ::testing::Test {
 protected:
  static constexpr int kCards = 3;

  static void SetUpTestSuite() {
    RegisterOps();
    driver_ = &RegisterFakeCuda(kCards);
    RegisterRuntimeKernels(KernelRegistry::Global());
  }
  // Of a session that has all cards.
  static SessionConfig Config() {
    SessionConfig config;
    config.device_count[CudaBackend::Get().type()] = kCards;
    config.operation_timeout = std::chrono::minutes(1);
    return config;
  }
  static inline FakeDriver* driver_ = nullptr;
};

}  // namespace cohort::cuda
