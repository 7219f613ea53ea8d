// UpdateVariables: enqueues work that updates variables. ReadValue: reads one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/device/variable_resource.h"

namespace cohort::cuda {

// Calls `change` as VariableResource::UpdateTogether does: it checks, and enqueues work that writes all elements of
// `outs`. Then counts the update, so that a step that is cancelled afterwards applies all of its updates. While a step
// is recorded, no variable changes: the work is recorded at the place of the value.
inline void UpdateVariables(const CudaCall& call, const std::vector<VariableResource*>& variables,
                            const std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs)>& change) {
  if (call.recording() != nullptr) return call.recording()->Update(call.ctx(), variables, change);
  VariableResource::UpdateTogether(variables, [&](std::span<const Tensor> olds, std::span<Tensor> outs) {
    change(olds, outs);
    call.CountUpdate();
  });
}

// Returns the value, which the step reads.
inline Tensor ReadValue(const KernelContext& ctx, VariableResource& variable) {
  Tensor value = variable.Read();
  if (CudaRecording* recording = CudaRecording::Current()) recording->NoteRead(ctx, variable, value);
  return value;
}

}  // namespace cohort::cuda
