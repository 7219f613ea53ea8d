// The base of the tests of recorded steps: GPUs of a fake driver, and what the driver was asked. For tests only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/device/logical_devices.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/session.h"

namespace cohort::cuda {

inline bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

// Returns a tensor with numbers between -1 and 1.
inline Tensor Numbers(const Shape& shape, int64_t seed) {
  Tensor tensor(DType::kFloat32, shape);
  auto state = static_cast<uint64_t>(seed) * 2654435761U + 1;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    tensor.data<float>()[i] = static_cast<float>(static_cast<double>(state >> 40) / (1 << 23) - 1.0);
  }
  return tensor;
}

class RecordingTest : public ::testing::Test {
 protected:
  static constexpr int kCards = 3;

  static void SetUpTestSuite() {
    RegisterOps();
    driver_ = &RegisterFakeCuda(kCards);
    RegisterRuntimeKernels(KernelRegistry::Global());
  }
  void TearDown() override { config::EnableStepRecording(true); }

  static SessionConfig Config() {
    SessionConfig config;
    config.device_count[CudaBackend::Get().type()] = kCards;
    config.operation_timeout = std::chrono::minutes(1);
    return config;
  }
  // What the driver was asked by `work`.
  struct Asked {
    int64_t launches;
    int64_t graphs;
  };
  template <typename Work>
  static Asked AskedBy(const Work& work) {
    const FakeControl& control = driver_->control();
    const Asked before{control.launches(), control.graph_launches()};
    work();
    return {control.launches() - before.launches, control.graph_launches() - before.graphs};
  }
  static inline FakeDriver* driver_ = nullptr;
};

inline void ExpectSame(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(SameBits(a[i], b[i])) << i << ": " << a[i].ToString() << b[i].ToString();
}

}  // namespace cohort::cuda
