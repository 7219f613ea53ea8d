// Kernels that are the same for every backend, because they read shapes and host values only. Internal to backends/.
#pragma once

#include <string>

#include "cohort/device/kernel.h"

namespace cohort {

// Registers kernels for the device type: those that pass their inputs on, perhaps with another shape (Identity,
// Reshape,
// ...), those that answer with shapes in host memory (Shape, Size, Rank), and BroadcastGradientArgs. No kernel reads or
// writes an element in device memory.
void RegisterShapeKernels(KernelRegistry& registry, const std::string& device_type);

}  // namespace cohort
