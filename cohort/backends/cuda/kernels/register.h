// Registers the kernels of the CUDA backend, which are grouped in families. Internal to backends/cuda.
#pragma once

#include "cohort/device/kernel.h"
#include "cohort/device/reduction.h"

namespace cohort::cuda {

// The device type of the backend's devices.
inline constexpr char kGpu[] = "GPU";

// One function for each family, in backends/cuda/kernels/<family>.cc.
void RegisterStateKernels(KernelRegistry& registry);  // variables
void RegisterConstantKernels(KernelRegistry& registry);
void RegisterUnaryKernels(KernelRegistry& registry);
void RegisterArithmeticKernels(KernelRegistry& registry);
void RegisterComparisonKernels(KernelRegistry& registry);
void RegisterSelectKernels(KernelRegistry& registry);
void RegisterActivationKernels(KernelRegistry& registry);
void RegisterReductionKernels(KernelRegistry& registry);
void RegisterSoftmaxKernels(KernelRegistry& registry);
void RegisterRandomKernels(KernelRegistry& registry);
void RegisterArrayKernels(KernelRegistry& registry);
void RegisterJoinKernels(KernelRegistry& registry);
void RegisterSliceKernels(KernelRegistry& registry);
void RegisterLayoutKernels(KernelRegistry& registry);  // Transpose, ReverseV2
void RegisterGatherKernels(KernelRegistry& registry);
void RegisterGatherNdKernels(KernelRegistry& registry);
void RegisterTopKKernels(KernelRegistry& registry);
void RegisterSpecialFunctionKernels(KernelRegistry& registry);
void RegisterPartitionKernels(KernelRegistry& registry);  // sums and updates of rows by index
void RegisterScanKernels(KernelRegistry& registry);
void RegisterTrainingKernels(KernelRegistry& registry);
void RegisterMatMulKernels(KernelRegistry& registry);
void RegisterConvolutionKernels(KernelRegistry& registry);
void RegisterPoolingKernels(KernelRegistry& registry);
void RegisterImageKernels(KernelRegistry& registry);  // sizes and moved pixels
void RegisterBatchNormKernels(KernelRegistry& registry);
void RegisterLayerNormKernels(KernelRegistry& registry);
void RegisterNnKernels(KernelRegistry& registry);  // BiasAdd, LRN and what is left of ops/nn
// The ops of on_host.cc, whose work is done by the CPU's kernels.
void RegisterKernelsOnHost(KernelRegistry& registry);

}  // namespace cohort::cuda
