// Chains of elementwise nodes as one kernel.
#pragma once

#include <memory>
#include <vector>

#include "cohort/device/backend.h"

namespace cohort::cuda {

// Returns whether the kernels of both nodes compute floating-point numbers element by element, and all their operands
// and results have one dtype. See Backend::CanChain.
bool CanChainElementwise(const ChainLink& producer, const ChainLink& consumer);

// Returns a kernel for the nodes `links`, which enqueues one launch (a long chain: a few). A value inside of the chain
// is never written to memory, and its elements are computed again for each element of the result that it broadcasts to.
// A failure names the node of the chain. See Backend::MakeChain.
std::unique_ptr<OpKernel> MakeElementwiseChain(std::vector<ChainLink> links);

}  // namespace cohort::cuda
