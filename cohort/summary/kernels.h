// Kernels of the summary ops (ops/summary.h).
#pragma once

namespace cohort {

class KernelRegistry;

void RegisterSummaryKernels(KernelRegistry& registry);

}  // namespace cohort
