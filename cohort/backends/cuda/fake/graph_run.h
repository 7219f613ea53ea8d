// RunOnGpu: computes a graph on a GPU of the fake driver or of the machine, for tests that compare kernels with the
// CPU's.
#pragma once

#include <utility>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/graph/graph.h"

namespace cohort::testing {

// Runs all nodes of the graph that are not fed by the kernels of GPUs. Returns the
// fetched values, in host memory. Nothing is forwarded in place. Throws what a kernel throws, or what it has reported
// later.
std::vector<Tensor> RunOnGpu(const Graph& graph, const std::vector<Output>& fetches,
                             const std::vector<std::pair<Output, Tensor>>& feeds);

}  // namespace cohort::testing
