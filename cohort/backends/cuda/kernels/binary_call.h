// What the kernels of several operands that broadcast do when they are called.
#pragma once

#include <array>
#include <initializer_list>

#include "cohort/backends/broadcast_plan.h"
#include "cohort/backends/cuda/kernels/binary_args.h"
#include "cohort/device/kernel.h"

namespace cohort::cuda {

// Copies a plan for kernels.
template <int N>
BroadcastDims<N> DimsOf(const BroadcastPlan<N>& plan) {
  BroadcastDims<N> dims;
  dims.rank = plan.rank;
  for (int d = 0; d < plan.rank; ++d) {
    const auto at = static_cast<size_t>(d);
    dims.dims[d] = Divider(plan.dims[at]);
    for (size_t o = 0; o < N; ++o) dims.strides[o][d] = plan.strides[o][at];
  }
  return dims;
}

// Makes output 0 of inputs 0 and 1, which broadcast, in the memory of an input if possible. Returns what a launch
// needs; n is 0 if there is nothing to launch.
BinaryArgs PrepareBinary(KernelContext& ctx);

}  // namespace cohort::cuda
