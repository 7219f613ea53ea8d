// HostFallbackKernel: a kernel whose work is done by the CPU's kernel of the same op.
#pragma once

#include <memory>

#include "cohort/device/kernel.h"

namespace cohort::cuda {

// Returns a kernel for the construction's node, whose device is a CudaDevice. It takes the CPU's kernel out of
// `registry`. When it is called, it waits until the device has run its work, copies the inputs to the host, runs the
// CPU's kernel on the calling thread, and copies the outputs to the device. If that kernel waits for something
// (AsyncOpKernel), this one does, too. If no input or output lies in the device's memory, it does not wait for the
// device.
std::unique_ptr<OpKernel> MakeHostFallback(const KernelRegistry& registry, const KernelConstruction& construction);

// Returns whether MakeHostFallback has made the kernel.
bool IsHostFallback(const OpKernel& kernel);

// Returns the CPU's kernel itself, for an op whose kernel never reads or writes elements in the device's memory.
std::unique_ptr<OpKernel> MakeHostReference(const KernelRegistry& registry, const KernelConstruction& construction);

}  // namespace cohort::cuda
