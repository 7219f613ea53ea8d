// BinaryArgs: what a launch of a function of two operands needs. Plain data.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/kernels/broadcast_dims.h"

namespace cohort::cuda {

// `out` may be the memory of an operand whose elements lie where those of the result lie.
struct BinaryArgs {
  const void* a;
  const void* b;
  void* out;
  int64_t n;       // elements of the result; at least 1
  int a_step = 1;  // 0: the operand is a single element
  int b_step = 1;
  bool broadcasts = false;  // if true, `dims` says where the operands' elements are, and the steps do not count
  BroadcastDims<2> dims = {};
};

}  // namespace cohort::cuda
