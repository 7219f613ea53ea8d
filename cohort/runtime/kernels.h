// Kernels of the nodes that the runtime itself adds: _Arg, _Retval, _Send, _Recv.
#pragma once

#include "cohort/device/kernel.h"

namespace cohort {

void RegisterRuntimeKernels(KernelRegistry& registry);

}  // namespace cohort
