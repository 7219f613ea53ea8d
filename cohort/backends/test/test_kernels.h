// The kernels of the TEST device: most of them run a kernel of the CPU's on the compute stream.
#pragma once

#include "cohort/device/kernel.h"

namespace cohort {

// Gives every op that has a kernel of the CPU's own one for TEST, except those that have one already. A kernel for TEST
// enqueues its work and returns:
//   - its outputs are allocated when it enqueues, in the shapes that the op's rule gives (OutputShapes);
//   - the work holds addresses, not tensors, so that buffers are freed and reused as on a GPU. It runs the CPU's kernel
//     on views of the device's memory and copies what that makes into the outputs. If the shapes differ from those of
//     the rule it reports InternalError;
//   - what the work throws becomes the step's error (StepError), and work of a failed step does nothing;
//   - an update of a variable runs the CPU's kernel on a CpuVariable that has the old value, and copies the new value.
// Ops whose outputs depend on nothing but shapes, host memory or references answer at once. Ops with a data-dependent
// shape, and those that make a value in host memory of values in device memory, wait for the stream first.
void RegisterTestKernels(KernelRegistry& registry);

}  // namespace cohort
