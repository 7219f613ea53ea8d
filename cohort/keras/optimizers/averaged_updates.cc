// The parts of GraphOptimizer that sum gradients over several steps and keep moving averages of weights.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/keras/optimizers/own_slots.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"

namespace cohort::keras {
namespace {

// Returns whether (count + 1) is a multiple of `period`: a bool scalar.
Output IsLastOf(const Output& count, int64_t period) {
  const Output every = ops::ScalarLike(count, static_cast<double>(period));
  const Output next = count + int64_t{1};
  return ops::Equal(next, ops::Mul(ops::FloorDiv(next, every), every));
}

// Adds the assignment of `value` to `variable` if `condition` is true. Otherwise `change` is subtracted from the
// variable, which no other subtraction can overwrite, or nothing is done if `change` is not valid. `condition` may be
// on another device.
Node* AssignIf(const Output& condition, const ops::Variable& variable, const Output& value, const Output& change = {}) {
  std::vector<Output> inputs = {variable.handle(), value};
  if (change.valid()) inputs.push_back(change);
  const FunctionBody assign = [](Graph& body, const std::vector<Output>& arguments) {
    const ControlDependencies after(body, {ops::AssignVariableOp(arguments[0], arguments[1])});
    return std::vector<Output>{ops::Const(body, true)};
  };
  const FunctionBody otherwise = [](Graph& body, const std::vector<Output>& arguments) {
    std::vector<Node*> updates;
    if (arguments.size() > 2) updates.push_back(ops::AssignSubVariableOp(arguments[0], arguments[2]));
    const ControlDependencies after(body, updates);
    return std::vector<Output>{ops::Const(body, false)};
  };
  return ops::If(condition, inputs, assign, otherwise).at(0).node;
}

}  // namespace

Node* GraphOptimizer::Accumulate(const std::vector<train::GradientAndVariable>& gradients) {
  Graph& graph = iterations_.graph();
  const int64_t steps = *options_.gradient_accumulation_steps;
  Output is_update;
  {
    const ColocateWith beside(graph, *iterations_.handle().node);
    is_update = IsLastOf(iterations_.value(), steps);
  }
  optimizer_->MakeSlotsFor(gradients);
  std::vector<Node*> nodes;
  std::vector<train::GradientAndVariable> means = gradients;
  for (train::GradientAndVariable& pair : means) {
    if (!pair.gradient.exists()) continue;
    const ColocateWith beside(graph, *pair.variable.handle().node);
    Output gradient = ToDense(pair.gradient);
    if (gradient.dtype() != pair.variable.dtype()) gradient = ops::Cast(gradient, pair.variable.dtype());
    const ops::Variable sum = optimizer_->slot(pair.variable, kSumOfGradients);
    const Output total = gradient + sum.Read();
    nodes.push_back(sum.Assign(ops::SelectV2(is_update, ops::ZerosLike(total), total)));
    pair.gradient = Gradient(ops::Div(total, ops::ScalarLike(total, static_cast<double>(steps))));
  }
  nodes.push_back(optimizer_->ApplyGradientsIf(is_update, Clip(means)));
  return ops::Group(graph, nodes, "accumulate");
}

Node* GraphOptimizer::UpdateAverages(Node* update, const std::vector<train::GradientAndVariable>& gradients) {
  Graph& graph = iterations_.graph();
  Output first, momentum, overwrites;
  {
    const ColocateWith beside(graph, *iterations_.handle().node);
    first = ops::Equal(updates_, ops::ScalarLike(updates_, 0.0));
    momentum =
        ops::SelectV2(first, ops::Const(graph, 0.0f), ops::Const(graph, static_cast<float>(options_.ema_momentum)));
    if (options_.ema_overwrite_frequency) overwrites = IsLastOf(updates_, *options_.ema_overwrite_frequency);
  }
  const ControlDependencies after(graph, {update});
  std::vector<Node*> nodes;
  for (const train::GradientAndVariable& pair : gradients) {
    if (!pair.gradient.exists()) continue;
    const ops::Variable& variable = pair.variable;
    if (std::find(averaged_.begin(), averaged_.end(), variable) == averaged_.end()) averaged_.push_back(variable);
    const ops::Variable average = optimizer_->slot(variable, kAverage);
    const ColocateWith beside(graph, *variable.handle().node);
    if (several_workers_) {
      const Output value = variable.Read();
      const Output change = (1.0 - options_.ema_momentum) * (average.Read() - value);
      nodes.push_back(AssignIf(first, average, value, change));
      continue;
    }
    const Output own = momentum.dtype() == variable.dtype() ? momentum : ops::Cast(momentum, variable.dtype());
    const Output moved = own * average.Read() + (1.0 - own) * variable.Read();
    nodes.push_back(average.Assign(moved));
    if (overwrites.valid()) nodes.push_back(AssignIf(overwrites, variable, moved));
  }
  return ops::Group(graph, nodes, "averages");
}

std::vector<Node*> GraphOptimizer::MakeChange(AveragesChange change) const {
  std::vector<Node*> nodes;
  for (const ops::Variable& variable : averaged_) {
    const ops::Variable average = optimizer_->slot(variable, kAverage);
    const Output of_variable = variable.Read(), of_average = average.Read();
    const ControlDependencies after(variable.graph(), {of_variable.node, of_average.node});
    if (change != AveragesChange::kFollowWeights) nodes.push_back(variable.Assign(of_average));
    if (change != AveragesChange::kOverwriteWeights) nodes.push_back(average.Assign(of_variable));
  }
  return nodes;
}

Node* GraphOptimizer::ChangeAverages(AveragesChange change) {
  if (averaged_.empty()) {
    throw FailedPreconditionError(StrCat("[keras/optimizer] expected an optimizer with use_ema=true that has been ",
                                         "applied; '", options_.name, "' has ",
                                         options_.use_ema ? "not been applied yet" : "use_ema=false"));
  }
  Node*& node = changes_[change];
  if (node == nullptr) node = ops::Group(iterations_.graph(), MakeChange(change), "change_averages");
  return node;
}

}  // namespace cohort::keras
