// Host kernels of the nodes that the runtime itself adds (_Arg, _Retval, _Send, _Recv), of those that call functions,
// of the lists in which functions keep values, and of assertions and prints.
#pragma once

#include "cohort/device/kernel.h"

namespace cohort {

// Only the first call does anything.
void RegisterRuntimeKernels(KernelRegistry& registry);
// PartitionedCall, If, While and their kin.
void RegisterFunctionKernels(KernelRegistry& registry);
void RegisterTensorListKernels(KernelRegistry& registry);
// NoOp, Assert, Print.
void RegisterControlKernels(KernelRegistry& registry);

}  // namespace cohort
