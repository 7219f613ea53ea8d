#include "cohort/runtime/execution/closure_updates.h"

#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/device/variable_resource.h"
#include "cohort/graph/joined_updates.h"

namespace cohort {

namespace {

// Returns the name of the resource of a handle.
std::string NameOfResource(const Tensor& handle) {
  const Resource& resource = *ResourceOfHandle(handle);
  if (const auto* variable = dynamic_cast<const VariableResource*>(&resource)) {
    return StrCat(variable->container(), "/", variable->name());
  }
  return resource.Describe();
}

// Returns what the node does, and inside of which calls.
std::string TextOf(const Node& node, const KernelContext& context) {
  std::string update;
  for (const CallFrame* call = context.step().caller; call != nullptr; call = call->outer) {
    update += call->caller.op_name() + "/";
  }
  update += node.op_name();
  if (const auto joined = FindJoinedUpdates(node)) update += StrCat(" ", joined->op->name());
  for (int i = 0; i < context.num_inputs(); ++i) {
    const Tensor& input = context.input(i);
    if (input.dtype() == DType::kResource) update += " " + NameOfResource(input);
  }
  const Tensor& first = context.input(0);
  if (first.dtype() == DType::kString) update += " " + first.ToString();  // a handle of TensorFlow's older kind
  return update;
}

}  // namespace

void ClosureUpdates::BeginStep(const ClosureId& closure) {
  MutexLock lock(mu_);
  closure_ = closure;
  made_.clear();
  begun_.clear();
  additions_.clear();
}

std::optional<std::string> ClosureUpdates::Count(const Node& node, const KernelContext& context) {
  std::string update = TextOf(node, context);
  const int before = made_[update]++;
  if (before > 0) update += StrCat(" #", before);
  if (!applied_.Begin(closure_, update)) return std::nullopt;
  return update;
}

std::optional<std::string> ClosureUpdates::Begin(const Node& node, const KernelContext& context) {
  MutexLock lock(mu_);
  std::optional<std::string> update = Count(node, context);
  if (update) begun_.push_back(*update);
  return update;
}

void ClosureUpdates::Undo(const std::string& update) {
  MutexLock lock(mu_);
  applied_.Undo(closure_, update);
  std::erase(begun_, update);
}

bool ClosureUpdates::BeginAddition(const Node& node, const KernelContext& context) {
  MutexLock lock(mu_);
  std::optional<std::string> addition = Count(node, context);
  if (!addition) return false;
  additions_[{&node, context.step().caller}] = *std::move(addition);
  return true;
}

void ClosureUpdates::UndoAddition(const Node& node, const CallFrame* caller) {
  MutexLock lock(mu_);
  const auto found = additions_.find({&node, caller});
  if (found == additions_.end()) return;
  applied_.Undo(closure_, found->second);
  additions_.erase(found);
}

void ClosureUpdates::UndoAfter(size_t applied) {
  MutexLock lock(mu_);
  while (begun_.size() > applied) {
    applied_.Undo(closure_, begun_.back());
    begun_.pop_back();
  }
}

}  // namespace cohort
