// Memory placement: which values of a partition lie in host memory, on a device that has a memory of its own.
#pragma once

#include <string>

#include "cohort/device/kernel.h"

namespace cohort {

// Returns whether the value lies in host memory on every device. It does if its op says so, if its elements are objects
// (strings, handles), or if PlaceInMemory has decided so.
bool LiesInHostMemory(const Output& value);

// Returns `value` in the memory in which output `output` of the kernel's node must lie. Copies it if it lies in the
// other memory. Used by kernels whose values may lie in either memory.
Tensor PlacedAs(const KernelContext& ctx, int output, Tensor value);
// Returns whether PlacedAs would copy `value` to host memory. Such a copy waits for the device.
bool MustComeToHost(const KernelContext& ctx, int output, const Tensor& value);

// Copies `value` to host memory and calls `done` once. If the value already lies there, calls `done` before it returns.
// Otherwise calls it when all work that was enqueued before has run. If work of the step has reported an error by then,
// `done` gets that error.
void CopyToHostInStep(const KernelContext& ctx, const Tensor& value, Device::CopyDone done);

// Makes each input of each node lie in the memory that its kernel on `device_type` needs. Used for a device whose
// memory the host cannot read. Fed values, received values and constants are put directly into the memory in which they
// are needed. For other values it adds _ToHost or _ToDevice nodes, at most one for each value. A kernel that accepts
// both memories (KernelMemory::kEither) gets its inputs as they are.
void PlaceInMemory(Graph& graph, const std::string& device_type);

}  // namespace cohort
