// Memory placement: which values of a partition lie in host memory on a device that has a memory of its own.
#pragma once

#include <string>

#include "cohort/device/kernel.h"

namespace cohort {

// Whether the value lies in host memory on every device: its op says so, its elements are objects (strings, handles),
// or PlaceInMemory has decided so.
bool LiesInHostMemory(const Output& value);

// Returns `value` where output `output` of the kernel's node is to lie, copied if it lies elsewhere. For kernels whose
// values may lie in either memory.
Tensor PlacedAs(const KernelContext& ctx, int output, Tensor value);
// Whether PlacedAs would copy `value` to host memory, which waits for the device.
bool MustComeToHost(const KernelContext& ctx, int output, const Tensor& value);

// Copies `value` to host memory and calls `done` once: before this returns if the value lies there, else when the work
// has run that the device has been given so far. If work of the step has reported an error by then, `done` gets that.
void CopyToHostInStep(const KernelContext& ctx, const Tensor& value, Device::CopyDone done);

// Sees to it that every input of every node lies where its kernel on `device_type` wants it, on a device whose memory
// the host cannot read. Fed and received values and constants are put where they are needed; elsewhere _ToHost and
// _ToDevice nodes are added, one a value. A kernel that takes either memory (KernelMemory::kEither) gets its inputs
// where they are.
void PlaceInMemory(Graph& graph, const std::string& device_type);

}  // namespace cohort
