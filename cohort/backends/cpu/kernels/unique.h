// Unique and UniqueWithCounts: part of the gather family, in a file of their own. Internal to backends/cpu/kernels.
#pragma once

namespace cohort {
class KernelRegistry;
}

namespace cohort::cpu {

void RegisterUniqueKernels(KernelRegistry& registry);

}  // namespace cohort::cpu
