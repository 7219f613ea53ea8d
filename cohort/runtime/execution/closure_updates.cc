#include "cohort/runtime/execution/closure_updates.h"

#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/device/variable_resource.h"

namespace cohort {

namespace {

// Returns the name of the resource of a handle.
std::string NameOfResource(const Tensor& handle) {
  const Resource* resource = ResourceOfHandle(handle).get();
  if (const auto* variable = dynamic_cast<const VariableResource*>(resource)) {
    return StrCat(variable->container(), "/", variable->name());
  }
  return resource->Describe();
}

}  // namespace

bool ClosureUpdates::Begin(const Node& node, const KernelContext& context) {
  std::string update = TextOf(node, context);
  if (!applied_.Begin(closure_, update)) return false;
  begun_.push_back(std::move(update));
  return true;
}

bool ClosureUpdates::BeginAddition(const Node& node, const KernelContext& context) {
  std::string addition = TextOf(node, context);
  if (!applied_.Begin(closure_, addition)) return false;
  MutexLock lock(mu_);
  additions_[&node] = std::move(addition);
  return true;
}

void ClosureUpdates::UndoAddition(const Node& node) {
  MutexLock lock(mu_);
  const auto found = additions_.find(&node);
  if (found == additions_.end()) return;
  applied_.Undo(closure_, found->second);
  additions_.erase(found);
}

std::string ClosureUpdates::TextOf(const Node& node, const KernelContext& context) {
  std::string update = node.op_name();
  for (int i = 0; i < context.num_inputs(); ++i) {
    const Tensor& input = context.input(i);
    if (input.dtype() == DType::kResource) update += " " + NameOfResource(input);
  }
  const Tensor& first = context.input(0);
  if (first.dtype() == DType::kString) update += " " + first.ToString();  // a handle of TensorFlow's older kind
  const int before = made_[update]++;
  if (before > 0) update += StrCat(" #", before);
  return update;
}

void ClosureUpdates::UndoAfter(size_t applied) {
  while (begun_.size() > applied) {
    applied_.Undo(closure_, begun_.back());
    begun_.pop_back();
  }
}

}  // namespace cohort
