// The chains of common_chains.txt. Their kernels are compiled with the program. make_common_chains.cc writes them, and
// the table, while the program is built.
#pragma once

#include <span>
#include <string_view>

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/chain_call.h"

namespace cohort::cuda {

struct CommonChain {
  std::string_view key;   // the bytes of its ChainKey
  std::string_view text;  // its line
  void (*launch)(Driver& driver, StreamHandle stream, const LaunchSize& size, const ChainCall& call);
};

// Returns the table, ordered by key. It lives as long as the program.
std::span<const CommonChain> CommonChains();

}  // namespace cohort::cuda
