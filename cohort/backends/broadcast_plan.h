// BroadcastPlan: the loops over N operands that broadcast against each other. Neighbouring dimensions are merged if
// each operand can step through them with one stride (it is contiguous in them, or repeats in both). So there are few,
// long loops. Internal to backends.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "cohort/core/shape.h"

namespace cohort {

// The merged dimensions of a broadcast. There are `rank` of them, at least 1. One step along dimension d moves operand
// o by strides[o][d] elements. A stride of 0 repeats an element. Along the last dimension every stride is 0 or 1.
template <int N>
struct BroadcastPlan {
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> dims;
  std::array<std::array<int64_t, Shape::kMaxRank>, N> strides;

  // Returns the length of the last dimension, which is the number of elements of one inner loop.
  int64_t inner() const { return dims[static_cast<size_t>(rank - 1)]; }
  // Returns true if the inner loop uses one element of the operand again and again.
  bool inner_repeats(int operand) const {
    return strides[static_cast<size_t>(operand)][static_cast<size_t>(rank - 1)] == 0;
  }
  // Returns how many times the inner loop runs.
  int64_t outer() const {
    int64_t product = 1;
    for (int d = 0; d + 1 < rank; ++d) product *= dims[static_cast<size_t>(d)];
    return product;
  }
};

// Returns the BroadcastPlan for these shapes. Requires: `output` is the broadcast shape of the operands, and no
// dimension of it is 0.
template <int N>
BroadcastPlan<N> PlanBroadcast(const Shape& output, const std::array<const Shape*, N>& operands) {
  BroadcastPlan<N> plan;
  // For each operand: the product of its dimensions that the loop has passed (= the stride of the next).
  std::array<int64_t, N> steps;
  steps.fill(1);
  // From the last dimension to the first; reversed at the end.
  for (int d = output.rank() - 1; d >= 0; --d) {
    const int64_t dim = output.dim(d);
    if (dim == 1) continue;
    std::array<int64_t, N> stride;
    bool merge = plan.rank > 0;
    for (size_t o = 0; o < N; ++o) {
      const int at = d - (output.rank() - operands[o]->rank());
      const bool repeats = at < 0 || operands[o]->dim(at) == 1;
      stride[o] = repeats ? 0 : steps[o];
      if (!repeats) steps[o] *= dim;
      if (plan.rank > 0) {
        const size_t last = static_cast<size_t>(plan.rank - 1);
        merge = merge && stride[o] == plan.strides[o][last] * plan.dims[last];
      }
    }
    if (merge) {
      plan.dims[static_cast<size_t>(plan.rank - 1)] *= dim;
      continue;
    }
    for (size_t o = 0; o < N; ++o) plan.strides[o][static_cast<size_t>(plan.rank)] = stride[o];
    plan.dims[static_cast<size_t>(plan.rank++)] = dim;
  }
  if (plan.rank == 0) {
    plan.rank = 1;
    plan.dims[0] = 1;
    for (size_t o = 0; o < N; ++o) plan.strides[o][0] = 1;
  }
  for (int i = 0, j = plan.rank - 1; i < j; ++i, --j) {
    std::swap(plan.dims[static_cast<size_t>(i)], plan.dims[static_cast<size_t>(j)]);
    for (size_t o = 0; o < N; ++o) {
      std::swap(plan.strides[o][static_cast<size_t>(i)], plan.strides[o][static_cast<size_t>(j)]);
    }
  }
  return plan;
}

}  // namespace cohort
