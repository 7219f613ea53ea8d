// The kernels of the TEST device. Most of them run a kernel of the CPU's on the compute stream.
#pragma once

#include "cohort/device/kernel.h"

namespace cohort {

// Gives each op that has a kernel of the CPU's own a kernel for TEST, unless it has one already. A kernel for TEST
// enqueues its work and returns.
// - It allocates its outputs when it enqueues, with the shapes that the op's shape rule gives (OutputShapes).
// - The work holds addresses, not tensors, so that buffers are freed and reused as on a GPU. It runs the CPU's kernel
//   on views of the device's memory and copies the results into the outputs. If their shapes differ from those of the
//   rule, it reports InternalError.
// - If the work throws, that becomes the step's error (StepError). Work of a failed step does nothing.
// - An update of a variable runs the CPU's kernel on a CpuVariable that has the old value, and copies the new value.
// Ops whose outputs depend only on shapes, host memory or references run at once. Ops with a data-dependent shape, and
// those that make a value in host memory from values in device memory, first wait for the stream.
void RegisterTestKernels(KernelRegistry& registry);

}  // namespace cohort
