// UpdateVariables: enqueues work that updates variables. ReadValue: reads one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/device/variable_resource.h"

namespace cohort::cuda {

// The step's error word while an update is enqueued (ErrorWords::Hold). One call of a kernel owns it.
class HeldWord {
 public:
  // Throws the step's error if it has failed.
  explicit HeldWord(const CudaCall& call) : call_(call), word_(call.device().error_words().Hold(call.ctx())) {}
  ~HeldWord() {
    if (word_ != nullptr) call_.device().error_words().Release(call_.ctx());
  }
  HeldWord(const HeldWord&) = delete;
  HeldWord& operator=(const HeldWord&) = delete;
  const ErrorWord* get() const { return word_; }

 private:
  const CudaCall& call_;
  const ErrorWord* const word_;
};

// Calls `change` as VariableResource::UpdateTogether does: it checks, and enqueues work that writes all elements of
// `outs`: the old values if `error` is not null and the word is not 0. Then counts the update, so that a step that is
// cancelled afterwards applies all of its updates. While a step is recorded, no variable changes: the work is recorded
// at the place of the value. Throws the step's error if it has failed.
inline void UpdateVariables(
    const CudaCall& call, const std::vector<VariableResource*>& variables,
    const std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs, const ErrorWord* error)>& change) {
  const HeldWord word(call);
  const auto enqueue = [&](std::span<const Tensor> olds, std::span<Tensor> outs) { change(olds, outs, word.get()); };
  if (call.recording() != nullptr) return call.recording()->Update(call.ctx(), variables, enqueue);
  VariableResource::UpdateTogether(variables, [&](std::span<const Tensor> olds, std::span<Tensor> outs) {
    enqueue(olds, outs);
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
