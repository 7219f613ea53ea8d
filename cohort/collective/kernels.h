// Kernels of the collective ops (ops/collective.h), which call the communicator of their device.
#pragma once

namespace cohort {

class KernelRegistry;

void RegisterCollectiveKernels(KernelRegistry& registry);

}  // namespace cohort
