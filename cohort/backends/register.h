// RegisterKernels: the explicit list of the kernel families of this module. Internal; programs reach it through
// cohort/registration.h.
#pragma once

#include "cohort/device/kernel.h"
#include "cohort/device/reduction.h"

namespace cohort {

// Adds every kernel of kernels/ to the global registry, and the reductions to theirs. Thread-safe; only the first call
// does anything.
void RegisterKernels();

// One a family, in backends/cpu/kernels/<family>.cc.
void RegisterConstantKernels(KernelRegistry& registry);
void RegisterArrayKernels(KernelRegistry& registry);
void RegisterLayoutKernels(KernelRegistry& registry);
void RegisterJoinKernels(KernelRegistry& registry);
void RegisterSliceKernels(KernelRegistry& registry);
void RegisterGatherKernels(KernelRegistry& registry);
void RegisterPartitionKernels(KernelRegistry& registry);
void RegisterUnaryKernels(KernelRegistry& registry);
void RegisterArithmeticKernels(KernelRegistry& registry);
void RegisterComparisonKernels(KernelRegistry& registry);
void RegisterSelectKernels(KernelRegistry& registry);
void RegisterReductionKernels(KernelRegistry& registry);
void RegisterScanKernels(KernelRegistry& registry);
void RegisterMatMulKernels(KernelRegistry& registry);
void RegisterStateKernels(KernelRegistry& registry);
void RegisterControlKernels(KernelRegistry& registry);
void RegisterTensorListKernels(KernelRegistry& registry);
void RegisterActivationKernels(KernelRegistry& registry);
void RegisterSoftmaxKernels(KernelRegistry& registry);
void RegisterNnKernels(KernelRegistry& registry);
void RegisterConvolutionKernels(KernelRegistry& registry);
void RegisterPoolingKernels(KernelRegistry& registry);
void RegisterBatchNormKernels(KernelRegistry& registry);
void RegisterRandomKernels(KernelRegistry& registry);
void RegisterTrainingKernels(KernelRegistry& registry);

// The reductions that collectives use; in backends/cpu/kernels/combine.cc.
void RegisterCpuReductions(Reductions& reductions);

}  // namespace cohort
