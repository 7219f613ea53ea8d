// Runs the rule of an optimizer. ComputeGradients adds the gradients. ApplyGradients first makes all slots, then adds
// one update for each variable on the variable's device. At the end it advances the powers and increments the global
// step.
#include "cohort/train/optimizer.h"

#include <algorithm>
#include <optional>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/clip.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/state.h"

namespace cohort::train {
namespace {

// Returns the device of the variable that `value` reads, or of the node of `value`; "" if it has none.
std::string DeviceOfRead(const Output& value) {
  const std::vector<Output> inputs = value.node->inputs();
  return inputs.empty() ? value.node->device() : inputs.front().node->device();
}

std::vector<ops::Variable> TrainableVariables(Graph& graph) {
  std::vector<ops::Variable> found;
  for (VariableInfo* info : graph.variables()) {
    if (info->trainable) found.emplace_back(info);
  }
  return found;
}

VariableRequest RequestBeside(const ops::Variable& variable, std::string name, DType dtype, const Shape& shape,
                              double initial) {
  VariableRequest request;
  request.name = std::move(name);
  request.dtype = dtype;
  request.shape = shape;
  request.trainable = false;
  request.local = variable.info()->local;
  Graph& graph = variable.graph();
  request.initial_value = [&graph, shape, dtype, initial, full_name = request.name] {
    return initializers::Constant(initial)({graph, shape, dtype, full_name});
  };
  return request;
}

// Returns the node that runs after `nodes`, with exactly this name. It increments `global_step` if there is one.
Node* FinalNode(Graph& graph, const std::vector<Node*>& nodes, const ops::Variable& global_step,
                const std::string& name) {
  if (!global_step.valid()) {
    Node* all = ops::Group(graph, nodes, name + "/update");
    return graph.Op("NoOp").ExactName(name).Control(all).Device(all->device()).Finish();
  }
  const ColocateWith beside(graph, *global_step.handle().node);
  Node* all = ops::Group(graph, nodes, name + "/update");
  const Output one = ops::Const(graph, ops::NumberTensor(global_step.dtype(), 1), name + "/value");
  return graph.Op("AssignAddVariableOp").ExactName(name).Input(global_step.handle()).Input(one).Control(all).Finish();
}

}  // namespace

Gradient SumRepeatedRows(const Gradient& gradient) {
  // A gradient that was summed and clipped has each row once.
  if (gradient.indices.node->op_name() == "Unique" && gradient.indices.index == 0) return gradient;
  const ops::UniqueResult unique = ops::Unique(gradient.indices);
  const Output rows = ops::UnsortedSegmentSum(gradient.values, unique.idx, ops::Size(unique.y));
  return Gradient(rows, unique.y, gradient.dense_shape);
}

std::vector<GradientAndVariable> ClipByGlobalNorm(const std::vector<GradientAndVariable>& gradients, float clip_norm,
                                                  Output* global_norm) {
  std::vector<Gradient> given;
  for (const GradientAndVariable& pair : gradients) given.push_back(pair.gradient);
  const ops::ClippedGradients clipped = ops::ClipByGlobalNorm(given, clip_norm);
  if (global_norm != nullptr) *global_norm = clipped.global_norm;
  std::vector<GradientAndVariable> result = gradients;
  for (size_t i = 0; i < result.size(); ++i) result[i].gradient = clipped.gradients[i];
  return result;
}

Optimizer::Optimizer(std::string name, Hyperparameter learning_rate, UpdateRulePtr rule, Output iterations)
    : name_(std::move(name)),
      learning_rate_(std::move(learning_rate)),
      rule_(std::move(rule)),
      iterations_(iterations) {
  if (rule_ == nullptr) {
    throw InvalidArgumentError(
        StrCat("[train/optimizer] expected an update rule for '", name_, "'; got a null pointer"));
  }
  for (const NamedNumber& base : rule_->powers()) {
    if (base.value.is_fixed()) continue;
    throw InvalidArgumentError(StrCat("[train/optimizer] expected ", base.name, " of '", name_,
                                      "' as a number, since its powers start from it; got a value of a graph"));
  }
}

std::vector<GradientAndVariable> Optimizer::ComputeGradients(Output loss,
                                                             const std::vector<ops::Variable>& variables) const {
  const std::vector<ops::Variable> targets = variables.empty() ? TrainableVariables(loss.graph()) : variables;
  if (targets.empty()) {
    throw InvalidArgumentError(StrCat("[train/optimizer] expected variables to optimize; ", name_,
                                      " got none, and the graph has no trainable one"));
  }
  std::vector<Output> handles;
  for (const ops::Variable& variable : targets) handles.push_back(variable.handle());
  const std::vector<Gradient> gradients = Gradients({loss}, handles);
  std::vector<GradientAndVariable> pairs;
  for (size_t i = 0; i < targets.size(); ++i) pairs.push_back({gradients[i], targets[i]});
  return pairs;
}

Node* Optimizer::Minimize(Output loss, const ops::Variable& global_step, const std::vector<ops::Variable>& variables) {
  return ApplyGradients(ComputeGradients(loss, variables), global_step);
}

std::vector<ops::Variable> Optimizer::WithGradients(const std::vector<GradientAndVariable>& gradients) const {
  std::vector<ops::Variable> variables;
  std::vector<std::string> names;
  for (const GradientAndVariable& pair : gradients) {
    names.push_back(pair.variable.name());
    if (pair.gradient.exists()) variables.push_back(pair.variable);
  }
  if (variables.empty()) {
    throw InvalidArgumentError(StrCat("[train/optimizer] No gradients provided for any variable: [",
                                      StrJoin(names, ", "), "]; the loss of ", name_, " depends on none of them"));
  }
  return variables;
}

Node* Optimizer::ApplyGradients(const std::vector<GradientAndVariable>& gradients, const ops::Variable& global_step) {
  const std::vector<ops::Variable> variables = WithGradients(gradients);
  Graph& graph = variables[0].graph();
  MakeSlots(variables);
  std::vector<Node*> updates;
  std::string prefix;
  {
    const NameScope scope(graph, name_);
    prefix = scope.prefix();
    for (const GradientAndVariable& pair : gradients) {
      if (pair.gradient.exists()) updates.push_back(Update(pair));
    }
    updates = AdvancePowers(updates);
  }
  const NameScope root(graph, "");
  return FinalNode(graph, updates, global_step, prefix);
}

Node* Optimizer::Update(const GradientAndVariable& pair) {
  Graph& graph = pair.variable.graph();
  const ColocateWith beside(graph, *pair.variable.handle().node);
  const NameScope scope(graph, "update_" + pair.variable.name());
  Gradient gradient = pair.gradient;
  if (gradient.is_sparse() && rule_->sparse_form() == SparseForm::kDense) gradient = Gradient(ToDense(gradient));
  if (gradient.is_sparse() && rule_->sparse_form() == SparseForm::kUniqueRows) gradient = SumRepeatedRows(gradient);
  const DType dtype = pair.variable.dtype();
  if (gradient.values.dtype() != dtype) gradient.values = ops::Cast(gradient.values, dtype);
  return rule_->Update(UpdateArgs(*this, pair.variable, gradient));
}

// The powers are beside the variable whose name is first, so that they do not depend on the order of the gradients.
void Optimizer::MakeSlots(const std::vector<ops::Variable>& variables) {
  if (!iterations_.valid()) {
    const ops::Variable& first =
        *std::min_element(variables.begin(), variables.end(),
                          [](const ops::Variable& a, const ops::Variable& b) { return a.name() < b.name(); });
    for (const NamedNumber& base : rule_->powers()) {
      if (!powers_.contains(base.name)) powers_[base.name] = MakePower(base, first);
    }
  }
  for (const std::vector<Slot>& group : rule_->slots()) {
    for (const ops::Variable& variable : variables) {
      for (const Slot& slot : group) MakeSlot(variable, slot);
    }
  }
}

std::vector<Node*> Optimizer::AdvancePowers(const std::vector<Node*>& updates) {
  if (powers_.empty()) return updates;
  const std::vector<NamedNumber> bases = rule_->powers();
  const ops::Variable& first = powers_.at(bases[0].name);
  const ColocateWith beside(first.graph(), *first.handle().node);
  std::vector<Output> next;
  for (const NamedNumber& base : bases) {
    const ops::Variable& power = powers_.at(base.name);
    next.push_back(ops::Mul(power.value(), Number(base, power)));
  }
  const ControlDependencies after(first.graph(), updates);
  std::vector<Node*> all = updates;
  for (size_t i = 0; i < bases.size(); ++i) {
    all.push_back(ops::AssignVariableOp(powers_.at(bases[i].name).handle(), next[i]));
  }
  return all;
}

Output Optimizer::Number(const NamedNumber& number, const ops::Variable& variable) {
  const auto same = [&](const NamedNumber& known) { return known.name == number.name && known.value == number.value; };
  auto found = std::find_if(numbers_.begin(), numbers_.end(), same);
  if (found == numbers_.end()) found = numbers_.insert(numbers_.end(), number);
  return found->value.For(variable, number.name);
}

Output Optimizer::Power(const NamedNumber& base, const ops::Variable& variable) {
  std::vector<std::string> names;
  for (const NamedNumber& known : rule_->powers()) names.push_back(known.name);
  if (std::find(names.begin(), names.end(), base.name) == names.end()) {
    throw InvalidArgumentError(StrCat("[train/optimizer] expected a number of UpdateRule::powers() of '", name_, "' (",
                                      names.empty() ? "none" : StrJoin(names, ", "), ") in UpdateArgs::Power; got '",
                                      base.name, "'; add it to powers()"));
  }
  if (!iterations_.valid()) {
    const Output power = powers_.at(base.name).value();
    return power.dtype() == variable.dtype() ? power : ops::Cast(power, variable.dtype());
  }
  auto found = step_powers_.find(base.name);
  if (found == step_powers_.end()) {
    // All uses of the optimizer share the power, so the caller's device scope, such as that of one worker, is wrong for
    // it.
    const ColocateWith nowhere(variable.graph(), nullptr);
    const std::string device = DeviceOfRead(iterations_);
    std::optional<DeviceScope> hidden, beside;
    if (!device.empty()) {
      hidden.emplace(variable.graph(), nullptr);
      beside.emplace(variable.graph(), device);
    }
    const Output step = ops::Cast(iterations_, DType::kFloat32) + 1.0f;
    found = step_powers_.emplace(base.name, ops::Pow(ops::ScalarLike(step, base.value.value()), step)).first;
  }
  return found->second.For(variable, base.name + "_power");
}

ops::Variable Optimizer::slot(const ops::Variable& variable, const std::string& slot) const {
  const auto found = slots_.find({variable.info(), slot});
  return found == slots_.end() ? ops::Variable() : found->second;
}

std::vector<std::string> Optimizer::slot_names() const {
  std::set<std::string> names;
  for (const auto& [key, slot] : slots_) names.insert(key.second);
  return {names.begin(), names.end()};
}

// Does not use the variable creators: a slot belongs to one concrete variable, and is replicated or sharded like that
// variable.
void Optimizer::MakeSlot(const ops::Variable& variable, const Slot& slot) {
  ops::Variable& made = slots_[{variable.info(), slot.name}];
  if (made.valid()) return;
  if (!variable.shape().IsFullyDefined()) {
    throw InvalidArgumentError(StrCat("[train/optimizer] expected a fully defined shape for the slot '", slot.name,
                                      "' of variable '", variable.name(), "'; got ", variable.shape()));
  }
  Graph& graph = variable.graph();
  const ColocateWith beside(graph, *variable.handle().node);
  const NameScope root(graph, "");
  const std::string name = graph.UniqueName(variable.name() + "/" + name_);
  made = ops::Variable(
      ops::MakeVariable(graph, RequestBeside(variable, name, variable.dtype(), variable.shape(), slot.initial)));
  if (const std::optional<RowsOfVariable>& rows = variable.info()->rows_of) {
    made.info()->rows_of = {rows->name + name.substr(variable.name().size()), rows->shape, rows->first_row};
  }
  own_.push_back(made);
  if (slot.saved) saved_.push_back(made);
}

ops::Variable Optimizer::MakePower(const NamedNumber& base, const ops::Variable& beside_variable) {
  Graph& graph = beside_variable.graph();
  const ColocateWith beside(graph, *beside_variable.handle().node);
  const NameScope root(graph, "");
  const std::string full = graph.UniqueName(base.name + "_power");
  const ops::Variable made(
      ops::MakeVariable(graph, RequestBeside(beside_variable, full, DType::kFloat32, Shape(), base.value.value())));
  own_.push_back(made);
  saved_.push_back(made);
  return made;
}

Output UpdateArgs::slot(const std::string& name) const {
  const ops::Variable found = optimizer_.slot(variable_, name);
  if (found.valid()) return found.handle();
  const std::vector<std::string> names = optimizer_.slot_names();
  throw InvalidArgumentError(StrCat("[train/optimizer] expected a slot of UpdateRule::slots() of '", optimizer_.name(),
                                    "' (", names.empty() ? "none" : StrJoin(names, ", "), ") for variable '",
                                    variable_.name(), "'; got '", name, "'; add it to slots()"));
}
Output UpdateArgs::learning_rate() const { return optimizer_.learning_rate_.For(variable_, "learning_rate"); }
Output UpdateArgs::Number(const NamedNumber& number) const { return optimizer_.Number(number, variable_); }
Output UpdateArgs::Power(const NamedNumber& base) const { return optimizer_.Power(base, variable_); }

}  // namespace cohort::train
