// Reductions over the threads of a block. The order in which values are joined depends on the size of the block alone,
// so the same values give the same bits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

// Returns, on each thread of a warp, the values of all its threads, joined. `join` must not depend on the order of its
// two operands. A has 4 or 8 bytes. All threads of the warp call it. Requires: a kernel with kWaits.
template <typename A, typename Join>
COHORT_KERNEL A ReduceWarp(const Thread& thread, A value, const Join& join) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) value = join(value, ShuffleXor(thread, value, mask));
  return value;
}

// Returns, on each thread of a block, the values of all its threads, joined: first those of each warp, and then the
// warps in their order. All threads of the block call it. Requires: a kernel with kWaits, and blocks of one dimension
// and of whole warps.
template <typename A, typename Join>
COHORT_KERNEL A ReduceBlock(const Thread& thread, A value, const Join& join) {
  COHORT_SHARED(thread, A, of_warps, kWarpSize);
  const uint32_t warps = thread.threads() / kWarpSize;
  value = ReduceWarp(thread, value, join);
  if (warps == 1) return value;
  if (thread.thread() % kWarpSize == 0) of_warps[thread.thread() / kWarpSize] = value;
  thread.Sync();
  A all = of_warps[0];
  for (uint32_t i = 1; i < warps; ++i) all = join(all, of_warps[i]);
  thread.Sync();  // of_warps may be written again
  return all;
}

struct JoinSum {
  template <typename A>
  COHORT_KERNEL A operator()(A a, A b) const {
    return a + b;
  }
};
// Returns NaN if one of the operands is NaN.
struct JoinMax {
  template <typename A>
  COHORT_KERNEL A operator()(A a, A b) const {
    return a > b || a != a ? a : b;
  }
};

}  // namespace cohort::cuda
