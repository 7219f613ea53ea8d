// Kernels of the nodes that the runtime itself adds (_Arg, _Retval, _Send, _Recv), and of those that call functions.
#pragma once

#include "cohort/device/kernel.h"

namespace cohort {

// Only the first call does anything.
void RegisterRuntimeKernels(KernelRegistry& registry);
// PartitionedCall, If, While and their kin, for one type of device.
void RegisterFunctionKernels(KernelRegistry& registry, const char* device);

}  // namespace cohort
