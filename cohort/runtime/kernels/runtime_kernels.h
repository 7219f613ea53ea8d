// Host kernels that the runtime itself provides: for the nodes that it adds (_Arg, _Retval, _Send, _Recv), for ops that
// call functions, for tensor lists, for look-up tables, for queues, accumulators and step clocks, and for NoOp, Assert
// and Print.
#pragma once

#include "cohort/device/kernel.h"

namespace cohort {

// Registers all kernels of this header. Only the first call has an effect.
void RegisterRuntimeKernels(KernelRegistry& registry);
// Registers PartitionedCall, If, While and similar ops.
void RegisterFunctionKernels(KernelRegistry& registry);
void RegisterTensorListKernels(KernelRegistry& registry);
void RegisterLookupTableKernels(KernelRegistry& registry);
void RegisterQueueKernels(KernelRegistry& registry);
void RegisterAccumulatorKernels(KernelRegistry& registry);
void RegisterStepClockKernels(KernelRegistry& registry);
// Registers NoOp, Assert and Print.
void RegisterControlKernels(KernelRegistry& registry);

}  // namespace cohort
