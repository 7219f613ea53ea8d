// RegisterOps: registers all ops of this module, family by family. Internal. Programs call RegisterAll of
// cohort/registration.h, which calls it.
#pragma once

#include "cohort/graph/op_def.h"

namespace cohort {

// Adds every op of ops/ to the global registry, at the first call. Later calls do nothing. Thread-safe.
void RegisterOps();

// Each family has one function, in ops/<family>.cc. It adds the ops of the family.
void RegisterConstantOps(OpRegistry& registry);
void RegisterArrayOps(OpRegistry& registry);
void RegisterLayoutOps(OpRegistry& registry);
void RegisterJoinOps(OpRegistry& registry);
void RegisterSliceOps(OpRegistry& registry);
void RegisterGatherOps(OpRegistry& registry);
void RegisterGatherNdOps(OpRegistry& registry);
void RegisterTopKOps(OpRegistry& registry);
void RegisterCandidateSamplingOps(OpRegistry& registry);
void RegisterSpecialFunctionOps(OpRegistry& registry);
void RegisterLocalResponseOps(OpRegistry& registry);
void RegisterLookupOps(OpRegistry& registry);
void RegisterDecodeOps(OpRegistry& registry);
void RegisterLookupTableOps(OpRegistry& registry);
void RegisterImageFileOps(OpRegistry& registry);
void RegisterStringOps(OpRegistry& registry);
void RegisterPartitionOps(OpRegistry& registry);
void RegisterUnaryOps(OpRegistry& registry);
void RegisterArithmeticOps(OpRegistry& registry);
void RegisterComparisonOps(OpRegistry& registry);
void RegisterSelectOps(OpRegistry& registry);
void RegisterReductionOps(OpRegistry& registry);
void RegisterScanOps(OpRegistry& registry);
void RegisterMatMulOps(OpRegistry& registry);
void RegisterStateOps(OpRegistry& registry);
void RegisterControlOps(OpRegistry& registry);
void RegisterControlFlowOps(OpRegistry& registry);
void RegisterTensorListOps(OpRegistry& registry);
void RegisterCollectiveOps(OpRegistry& registry);
void RegisterQueueOps(OpRegistry& registry);
void RegisterAccumulatorOps(OpRegistry& registry);
void RegisterStepClockOps(OpRegistry& registry);
void RegisterActivationOps(OpRegistry& registry);
void RegisterSoftmaxOps(OpRegistry& registry);
void RegisterNnOps(OpRegistry& registry);
void RegisterConvolutionOps(OpRegistry& registry);
void RegisterPoolingOps(OpRegistry& registry);
void RegisterImageOps(OpRegistry& registry);
void RegisterNormalizationOps(OpRegistry& registry);
void RegisterLayerNormOps(OpRegistry& registry);
void RegisterRandomOps(OpRegistry& registry);
void RegisterTrainingOps(OpRegistry& registry);
void RegisterSummaryOps(OpRegistry& registry);

}  // namespace cohort
