// The base of the tests of recorded steps: GPUs, and what their driver was asked. For tests only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cohort/backends/cuda/testing/session_fixture.h"
#include "cohort/core/tensor.h"
#include "cohort/core/testing/seeded_noise.h"
#include "cohort/device/logical_devices.h"

namespace cohort::cuda {

inline bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

class RecordingTest : public CardsTest {
 protected:
  void TearDown() override { config::EnableStepRecording(true); }

  // What the driver was asked by `work`.
  struct Asked {
    int64_t launches;
    int64_t graphs;
  };
  template <typename Work>
  static Asked AskedBy(const Work& work) {
    const Asked before{counts_->launches(), counts_->graph_launches()};
    work();
    return {counts_->launches() - before.launches, counts_->graph_launches() - before.graphs};
  }
};

inline void ExpectSame(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(SameBits(a[i], b[i])) << i << ": " << a[i].ToString() << b[i].ToString();
}

}  // namespace cohort::cuda
