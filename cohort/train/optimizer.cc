// The base class of the optimizers. ComputeGradients adds the gradients. ApplyGradients first makes all slots, then
// adds one update for each variable on the variable's device, and at the end the increment of the global step.
#include "cohort/train/optimizer.h"

#include <algorithm>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/clip.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/state.h"

namespace cohort::train {
namespace {

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
    return ops::Constant(initial)({graph, shape, dtype, full_name});
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

Node* Optimizer::ApplyGradients(const std::vector<GradientAndVariable>& gradients, const ops::Variable& global_step) {
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
  Graph& graph = variables[0].graph();
  CreateSlots(variables);
  std::vector<Node*> updates;
  std::string prefix;
  {
    const NameScope scope(graph, name_);
    prefix = scope.prefix();
    for (const GradientAndVariable& pair : gradients) {
      if (pair.gradient.exists()) updates.push_back(Update(pair));
    }
    updates = Finish(updates);
  }
  const NameScope root(graph, "");
  return FinalNode(graph, updates, global_step, prefix);
}

Node* Optimizer::Update(const GradientAndVariable& pair) {
  Graph& graph = pair.variable.graph();
  const ColocateWith beside(graph, *pair.variable.handle().node);
  const NameScope scope(graph, "update_" + pair.variable.name());
  if (!pair.gradient.is_sparse()) return ApplyDense(pair.gradient.values, pair.variable);
  return ApplySparse(AllowsRepeats() ? pair.gradient : SumRepeatedRows(pair.gradient), pair.variable);
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

Output Optimizer::SlotHandle(const ops::Variable& variable, const std::string& slot) const {
  return slots_.at({variable.info(), slot}).handle();
}

// Does not use the variable creators: a slot belongs to one concrete variable, and is replicated or sharded like that
// variable.
void Optimizer::MakeSlot(const ops::Variable& variable, const std::string& slot, double initial) {
  ops::Variable& made = slots_[{variable.info(), slot}];
  if (made.valid()) return;
  if (!variable.shape().IsFullyDefined()) {
    throw InvalidArgumentError(StrCat("[train/optimizer] expected a fully defined shape for the slot '", slot,
                                      "' of variable '", variable.name(), "'; got ", variable.shape()));
  }
  Graph& graph = variable.graph();
  const ColocateWith beside(graph, *variable.handle().node);
  const NameScope root(graph, "");
  const std::string name = graph.UniqueName(variable.name() + "/" + name_);
  made = ops::Variable(
      ops::MakeVariable(graph, RequestBeside(variable, name, variable.dtype(), variable.shape(), initial)));
  own_.push_back(made);
}

ops::Variable Optimizer::MakeScalar(const std::string& name, double initial, const ops::Variable& beside_variable) {
  Graph& graph = beside_variable.graph();
  const ColocateWith beside(graph, *beside_variable.handle().node);
  const NameScope root(graph, "");
  const std::string full = graph.UniqueName(name);
  const ops::Variable made(
      ops::MakeVariable(graph, RequestBeside(beside_variable, full, DType::kFloat32, Shape(), initial)));
  own_.push_back(made);
  return made;
}

}  // namespace cohort::train
