// UpdateVariables: enqueues work that updates variables.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/device/variable_resource.h"

namespace cohort::cuda {

// Calls `change` as VariableResource::UpdateTogether does: it checks, and enqueues work that writes all elements of
// `outs`. Then counts the update, so that a step that is cancelled afterwards applies all of its updates.
inline void UpdateVariables(const CudaCall& call, const std::vector<VariableResource*>& variables,
                            const std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs)>& change) {
  VariableResource::UpdateTogether(variables, [&](std::span<const Tensor> olds, std::span<Tensor> outs) {
    change(olds, outs);
    call.CountUpdate();
  });
}

}  // namespace cohort::cuda
