// BroadcastDims: where the elements of operands that broadcast against each other lie. Plain data, for kernels and for
// the functions that launch them.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/kernels/divider.h"
#include "cohort/backends/cuda/kernels/moves.h"

namespace cohort::cuda {

inline constexpr int kMostDims = 8;

// `rank` dimensions of the result, from the outermost to the innermost; rank is at least 1. One step along dimension d
// moves operand o by strides[o][d] elements; 0 repeats an element.
template <int N>
struct BroadcastDims {
  int rank = 0;
  Divider dims[kMostDims];
  int64_t strides[N][kMostDims] = {};
};

// Sets at[o] to the place in operand o of the element that belongs to element i of the result.
template <int N>
COHORT_KERNEL void Locate(const BroadcastDims<N>& dims, int64_t i, int64_t (&at)[N]) {
  for (int o = 0; o < N; ++o) at[o] = 0;
  for (int d = dims.rank - 1; d > 0; --d) {
    int64_t rest;
    const int64_t index = dims.dims[d].Split(i, &rest);
    for (int o = 0; o < N; ++o) at[o] += index * dims.strides[o][d];
    i = rest;
  }
  for (int o = 0; o < N; ++o) at[o] += i * dims.strides[o][0];
}

}  // namespace cohort::cuda
