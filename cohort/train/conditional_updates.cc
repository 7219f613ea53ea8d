// Optimizer::ApplyGradientsIf: the update of each variable is the branch of an If on the variable's device. The body of
// the branch knows the variable and its slots by handles that are its arguments, and runs the same rule on them.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/state.h"
#include "cohort/train/optimizer.h"

namespace cohort::train {
namespace {

// Returns `variable` as the body of a branch has it, whose argument is `handle`.
VariableInfo InBody(const ops::Variable& variable, const Output& handle) {
  VariableInfo info;
  info.name = variable.name();
  info.dtype = variable.dtype();
  info.shape = variable.shape();
  info.handle = handle;
  info.value = ops::ReadVariableOp(handle);
  return info;
}

std::vector<Output> ResultAfter(Graph& body, const std::vector<Node*>& nodes) {
  const ControlDependencies after(body, nodes);
  return {ops::Const(body, true)};
}

}  // namespace

Node* Optimizer::ApplyGradientsIf(const Output& condition, const std::vector<GradientAndVariable>& gradients) {
  const std::vector<ops::Variable> variables = WithGradients(gradients);
  if (!iterations_.valid()) {
    throw FailedPreconditionError(StrCat("[train/optimizer] expected '", name_,
                                         "' to know the iterations, for updates that are made in some steps only"));
  }
  MakeSlots(variables);
  Graph& graph = variables[0].graph();
  const NameScope scope(graph, name_);
  std::vector<Node*> updates;
  for (const GradientAndVariable& pair : gradients) {
    if (pair.gradient.exists()) updates.push_back(UpdateIf(condition, pair));
  }
  return ops::Group(graph, updates, "update");
}

Node* Optimizer::UpdateIf(const Output& condition, const GradientAndVariable& pair) {
  const ops::Variable& variable = pair.variable;
  Graph& graph = variable.graph();
  const ColocateWith beside(graph, *variable.handle().node);
  const NameScope scope(graph, "update_" + variable.name());
  std::vector<Output> inputs = {variable.handle(), ToDense(pair.gradient),
                                learning_rate_.For(variable, "learning_rate"), iterations_};
  std::vector<std::pair<std::string, ops::Variable>> slots;
  for (const std::vector<Slot>& group : rule_->slots()) {
    for (const Slot& one : group) {
      slots.emplace_back(one.name, slot(variable, one.name));
      inputs.push_back(slots.back().second.handle());
    }
  }
  const size_t first_slot = inputs.size() - slots.size();
  const FunctionBody update = [&](Graph& body, const std::vector<Output>& arguments) {
    VariableInfo own = InBody(variable, arguments[0]);
    std::vector<VariableInfo> own_slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      own_slots.push_back(InBody(slots[i].second, arguments[first_slot + i]));
    }
    Optimizer inner(name_, Hyperparameter(arguments[2]), rule_, arguments[3]);
    for (size_t i = 0; i < slots.size(); ++i) inner.slots_[{&own, slots[i].first}] = ops::Variable(&own_slots[i]);
    return ResultAfter(body, {inner.Update({Gradient(arguments[1]), ops::Variable(&own)})});
  };
  const FunctionBody none = [](Graph& body, const std::vector<Output>&) { return ResultAfter(body, {}); };
  return ops::If(condition, inputs, update, none, "update").at(0).node;
}

}  // namespace cohort::train
