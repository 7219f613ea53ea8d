// The kernels of the collective ops (ops/collective.h). They call the communicator of their device.
#pragma once

namespace cohort {

class KernelRegistry;

// Adds the kernels to `registry`. Call it once for each registry, at start.
void RegisterCollectiveKernels(KernelRegistry& registry);

}  // namespace cohort
