// For tests: numbers that look random and are the same in each run.
#pragma once

#include <cstdint>

#include "cohort/core/tensor.h"

namespace cohort {

// Returns float32 numbers in [-1, 1) that depend only on the seed.
inline Tensor SeededNoise(const Shape& shape, int64_t seed) {
  Tensor tensor(DType::kFloat32, shape);
  uint64_t state = static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tensor.data<float>()[i] = static_cast<float>(static_cast<double>(state >> 40) / (1 << 23) - 1.0);
  }
  return tensor;
}

}  // namespace cohort
