#include "cohort/runtime/execution/closure_updates.h"

#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/device/variable_resource.h"

namespace cohort {

bool ClosureUpdates::Begin(const Node& node, const KernelContext& context) {
  std::string update = node.op_name();
  for (int i = 0; i < context.num_inputs(); ++i) {
    const Tensor& input = context.input(i);
    if (input.dtype() != DType::kResource) continue;
    const auto& variable = ResourceOf<VariableResource>(input);
    update += StrCat(" ", variable.container(), "/", variable.name());
  }
  const int before = made_[update]++;
  if (before > 0) update += StrCat(" #", before);
  if (!applied_.Begin(closure_, update)) return false;
  begun_.push_back(std::move(update));
  return true;
}

void ClosureUpdates::UndoAfter(size_t applied) {
  while (begun_.size() > applied) {
    applied_.Undo(closure_, begun_.back());
    begun_.pop_back();
  }
}

}  // namespace cohort
