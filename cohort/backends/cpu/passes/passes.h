// The graph passes of the CPU.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort {

// Fuses biases, activations and gradients of images into neighbouring nodes, and chooses the order of images.
// `device_type` is "CPU", or a type that has the CPU's kernels. A pass does nothing if the type does not have its
// kernels.
std::unique_ptr<Graph> RunCpuPasses(std::unique_ptr<Graph> partition, const std::string& device_type);

}  // namespace cohort
