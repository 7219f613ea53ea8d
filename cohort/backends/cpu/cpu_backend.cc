#include "cohort/backends/cpu/cpu_backend.h"

#include "cohort/backends/cpu/cpu_device.h"
#include "cohort/backends/cpu/elementwise_chain.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/passes/passes.h"

namespace cohort {

const CpuBackend& CpuBackend::Get() {
  static const auto* const backend = new CpuBackend;
  return *backend;
}

std::vector<std::unique_ptr<Device>> CpuBackend::MakeDevices(const DeviceRequest& request) const {
  return MakeCpuDevices(request.task, request.count, request.intra_op_threads, request.resources);
}

std::unique_ptr<Graph> CpuBackend::Improve(std::unique_ptr<Graph> partition) const {
  return RunCpuPasses(std::move(partition), type_);
}

bool CpuBackend::CanChain(const ChainLink& producer, const ChainLink& consumer) const {
  return cpu::CanChainElementwise(producer, consumer);
}

std::unique_ptr<OpKernel> CpuBackend::MakeChain(std::vector<ChainLink> links) const {
  return cpu::MakeElementwiseChain(std::move(links));
}

void CpuBackend::RegisterKernels(KernelRegistry& registry) const {
  RegisterConstantKernels(registry);
  RegisterArrayKernels(registry);
  RegisterLayoutKernels(registry);
  RegisterJoinKernels(registry);
  RegisterSliceKernels(registry);
  RegisterGatherKernels(registry);
  RegisterDecodeKernels(registry);
  RegisterImageFileKernels(registry);
  RegisterStringKernels(registry);
  RegisterRegexKernels(registry);
  RegisterStringRowKernels(registry);
  RegisterGatherNdKernels(registry);
  RegisterTopKKernels(registry);
  RegisterCandidateSamplingKernels(registry);
  RegisterSpecialFunctionKernels(registry);
  RegisterLocalResponseKernels(registry);
  RegisterLookupKernels(registry);
  RegisterSparseCrossKernels(registry);
  RegisterPartitionKernels(registry);
  RegisterUnaryKernels(registry);
  RegisterArithmeticKernels(registry);
  RegisterComparisonKernels(registry);
  RegisterSelectKernels(registry);
  RegisterReductionKernels(registry);
  RegisterScanKernels(registry);
  RegisterMatMulKernels(registry);
  RegisterStateKernels(registry);
  RegisterActivationKernels(registry);
  RegisterSoftmaxKernels(registry);
  RegisterNnKernels(registry);
  RegisterConvolutionKernels(registry);
  RegisterPoolingKernels(registry);
  RegisterImageKernels(registry);
  RegisterBatchNormKernels(registry);
  RegisterLayerNormKernels(registry);
  RegisterRandomKernels(registry);
  RegisterTrainingKernels(registry);
  RegisterCpuReductions(Reductions::Global());
}

}  // namespace cohort
