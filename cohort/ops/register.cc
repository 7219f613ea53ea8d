#include "cohort/ops/register.h"

#include <mutex>

#include "cohort/ops/data_flow.h"

namespace cohort {

void RegisterOps() {
  static std::once_flag once;
  std::call_once(once, [] {
    OpRegistry& registry = OpRegistry::Global();
    RegisterConstantOps(registry);
    RegisterArrayOps(registry);
    RegisterLayoutOps(registry);
    RegisterJoinOps(registry);
    RegisterSliceOps(registry);
    RegisterGatherOps(registry);
    RegisterGatherNdOps(registry);
    RegisterTopKOps(registry);
    RegisterCandidateSamplingOps(registry);
    RegisterSpecialFunctionOps(registry);
    RegisterLocalResponseOps(registry);
    RegisterLookupOps(registry);
    RegisterDecodeOps(registry);
    RegisterLookupTableOps(registry);
    RegisterImageFileOps(registry);
    RegisterStringOps(registry);
    RegisterPartitionOps(registry);
    RegisterUnaryOps(registry);
    RegisterArithmeticOps(registry);
    RegisterComparisonOps(registry);
    RegisterSelectOps(registry);
    RegisterReductionOps(registry);
    RegisterScanOps(registry);
    RegisterMatMulOps(registry);
    RegisterStateOps(registry);
    RegisterControlOps(registry);
    RegisterControlFlowOps(registry);
    RegisterTensorListOps(registry);
    RegisterCollectiveOps(registry);
    RegisterQueueOps(registry);
    RegisterAccumulatorOps(registry);
    RegisterStepClockOps(registry);
    RegisterActivationOps(registry);
    RegisterSoftmaxOps(registry);
    RegisterNnOps(registry);
    RegisterConvolutionOps(registry);
    RegisterPoolingOps(registry);
    RegisterImageOps(registry);
    RegisterNormalizationOps(registry);
    RegisterLayerNormOps(registry);
    RegisterRandomOps(registry);
    RegisterTrainingOps(registry);
    RegisterSummaryOps(registry);
    RegisterDataFlowOps(registry);
  });
}

}  // namespace cohort
