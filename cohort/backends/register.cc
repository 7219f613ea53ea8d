#include "cohort/backends/register.h"

#include <mutex>

namespace cohort {

void RegisterKernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    KernelRegistry& registry = KernelRegistry::Global();
    RegisterConstantKernels(registry);
    RegisterArrayKernels(registry);
    RegisterLayoutKernels(registry);
    RegisterJoinKernels(registry);
    RegisterSliceKernels(registry);
    RegisterGatherKernels(registry);
    RegisterPartitionKernels(registry);
    RegisterUnaryKernels(registry);
    RegisterArithmeticKernels(registry);
    RegisterComparisonKernels(registry);
    RegisterSelectKernels(registry);
    RegisterReductionKernels(registry);
    RegisterScanKernels(registry);
    RegisterMatMulKernels(registry);
    RegisterStateKernels(registry);
    RegisterControlKernels(registry);
    RegisterTensorListKernels(registry);
    RegisterActivationKernels(registry);
    RegisterSoftmaxKernels(registry);
    RegisterNnKernels(registry);
    RegisterConvolutionKernels(registry);
    RegisterPoolingKernels(registry);
    RegisterBatchNormKernels(registry);
    RegisterRandomKernels(registry);
    RegisterTrainingKernels(registry);
    RegisterCpuReductions(Reductions::Global());
  });
}

}  // namespace cohort
