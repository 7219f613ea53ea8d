// Registers the CPU's kernels, which are grouped in families. Internal to backends/cpu.
#pragma once

#include "cohort/device/kernel.h"
#include "cohort/device/reduction.h"

namespace cohort {

// One function for each family, in backends/cpu/kernels/<family>.cc.
void RegisterConstantKernels(KernelRegistry& registry);
void RegisterArrayKernels(KernelRegistry& registry);
void RegisterLayoutKernels(KernelRegistry& registry);
void RegisterJoinKernels(KernelRegistry& registry);
void RegisterSliceKernels(KernelRegistry& registry);
void RegisterGatherKernels(KernelRegistry& registry);
void RegisterDecodeKernels(KernelRegistry& registry);
void RegisterImageFileKernels(KernelRegistry& registry);
void RegisterStringKernels(KernelRegistry& registry);
void RegisterRegexKernels(KernelRegistry& registry);
void RegisterStringRowKernels(KernelRegistry& registry);
void RegisterGatherNdKernels(KernelRegistry& registry);
void RegisterTopKKernels(KernelRegistry& registry);
void RegisterCandidateSamplingKernels(KernelRegistry& registry);
void RegisterSpecialFunctionKernels(KernelRegistry& registry);
void RegisterLocalResponseKernels(KernelRegistry& registry);
void RegisterLookupKernels(KernelRegistry& registry);
void RegisterSparseCrossKernels(KernelRegistry& registry);
void RegisterPartitionKernels(KernelRegistry& registry);
void RegisterUnaryKernels(KernelRegistry& registry);
void RegisterArithmeticKernels(KernelRegistry& registry);
void RegisterComparisonKernels(KernelRegistry& registry);
void RegisterSelectKernels(KernelRegistry& registry);
void RegisterReductionKernels(KernelRegistry& registry);
void RegisterScanKernels(KernelRegistry& registry);
void RegisterMatMulKernels(KernelRegistry& registry);
void RegisterStateKernels(KernelRegistry& registry);
void RegisterActivationKernels(KernelRegistry& registry);
void RegisterSoftmaxKernels(KernelRegistry& registry);
void RegisterNnKernels(KernelRegistry& registry);
void RegisterConvolutionKernels(KernelRegistry& registry);
void RegisterPoolingKernels(KernelRegistry& registry);
void RegisterImageKernels(KernelRegistry& registry);  // sizes and moved pixels
void RegisterBatchNormKernels(KernelRegistry& registry);
void RegisterLayerNormKernels(KernelRegistry& registry);
void RegisterRandomKernels(KernelRegistry& registry);
void RegisterTrainingKernels(KernelRegistry& registry);

// Registers the reductions that collectives use; in combine.cc.
void RegisterCpuReductions(Reductions& reductions);

}  // namespace cohort
