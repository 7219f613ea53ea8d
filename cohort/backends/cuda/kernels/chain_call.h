// ChainCall: the argument of a kernel that was compiled for one chain. Plain data. The text of such a kernel contains
// this file (chain_source.h), so both sides have the same layout.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/kernels/broadcast_dims.h"

namespace cohort::cuda {

inline constexpr int kMostChainOperands = 16;

// The members are those of ChainArgs (chain.cu.h).
struct ChainCall {
  const void* data[kMostChainOperands] = {};
  void* out = nullptr;
  int64_t n = 0;
  int64_t packs = 0;  // the first elements, which are computed in packs
  BroadcastDims<kMostChainOperands> dims = {};
};

}  // namespace cohort::cuda
