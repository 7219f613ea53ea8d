// Walks along a BroadcastPlan: loops over N operands that broadcast against each other. Internal to
// backends/cpu/kernels.
#pragma once

#include <array>
#include <cstdint>

#include "cohort/backends/broadcast_plan.h"
#include "cohort/core/shape.h"

namespace cohort::cpu {

using cohort::BroadcastPlan;
using cohort::PlanBroadcast;

// A broadcast consists of plan.outer() inner loops of plan.inner() elements. For each inner loop with a number in
// [begin, end), calls body(index of its first output element, offset of its first element in each operand).
template <int N, typename Body>
void WalkBroadcast(const BroadcastPlan<N>& plan, int64_t begin, int64_t end, const Body& body) {
  std::array<int64_t, Shape::kMaxRank> index{};
  std::array<int64_t, N> offsets{};
  int64_t rest = begin;
  for (int d = plan.rank - 2; d >= 0; --d) {
    const size_t at = static_cast<size_t>(d);
    index[at] = rest % plan.dims[at];
    rest /= plan.dims[at];
    for (size_t o = 0; o < N; ++o) offsets[o] += index[at] * plan.strides[o][at];
  }
  for (int64_t run = begin; run < end; ++run) {
    body(run * plan.inner(), offsets);
    for (int d = plan.rank - 2; d >= 0; --d) {
      const size_t at = static_cast<size_t>(d);
      for (size_t o = 0; o < N; ++o) offsets[o] += plan.strides[o][at];
      if (++index[at] < plan.dims[at]) break;
      for (size_t o = 0; o < N; ++o) offsets[o] -= plan.dims[at] * plan.strides[o][at];
      index[at] = 0;
    }
  }
}

}  // namespace cohort::cpu
