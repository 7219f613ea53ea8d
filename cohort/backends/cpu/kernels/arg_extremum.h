// ArgMax and ArgMin: part of the reduction family, in a file of their own. Internal to backends/cpu/kernels.
#pragma once

namespace cohort {
class KernelRegistry;
}

namespace cohort::cpu {

void RegisterArgKernels(KernelRegistry& registry);

}  // namespace cohort::cpu
