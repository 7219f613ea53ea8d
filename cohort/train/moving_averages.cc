#include "cohort/train/moving_averages.h"

#include <optional>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variable_parts.h"

namespace cohort::train {
namespace {

void ExpectFloating(DType dtype, const std::string& name) {
  if (IsFloating(dtype)) return;
  throw InvalidArgumentError(
      StrCat("[train/moving_averages] The variables must be bfloat16, float, or double; '", name, "' is ", dtype));
}

// Returns the variable's value if it has one when the node runs, else its initial value.
Output InitializedValue(const ops::Variable& variable) {
  const FunctionBody read = [](Graph&, const std::vector<Output>& arguments) {
    return std::vector<Output>{ops::ReadVariableOp(arguments[0])};
  };
  const FunctionBody initial = [](Graph&, const std::vector<Output>& arguments) {
    return std::vector<Output>{ops::Identity(arguments[1])};
  };
  return ops::If(variable.is_initialized(), {variable.handle(), variable.initial_value()}, read, initial)[0];
}

// Makes a variable that is not trainable, with the name `name`. The scopes of the graph decide its device.
ops::Variable MakePlainVariable(Graph& graph, const std::string& name, DType dtype, const Shape& shape, bool local,
                                std::function<Output()> initial_value) {
  const NameScope root(graph, "");
  VariableRequest request;
  request.name = graph.UniqueName(name);
  request.dtype = dtype;
  request.shape = shape;
  request.trainable = false;
  request.local = local;
  request.initial_value = std::move(initial_value);
  return ops::Variable(ops::MakeVariable(graph, request));
}

ops::Variable MakeZeros(Graph& graph, const std::string& name, DType dtype, const Shape& shape) {
  return MakePlainVariable(graph, name, dtype, shape, /*local=*/false, [&graph, name, dtype, shape] {
    return initializers::Zeros()({graph, shape, dtype, name});
  });
}

// shadow -= rate * (shadow - value), beside the shadow.
Node* Move(const ops::Variable& shadow, const Output& value, const Output& rate) {
  return shadow.AssignSub((shadow.Read() - value) * rate, "AssignMovingAvg");
}

std::vector<ops::Variable> TrainableOf(const Graph& graph) {
  std::vector<ops::Variable> found;
  for (VariableInfo* info : graph.variables()) {
    if (info->trainable && !info->local) found.emplace_back(info);
  }
  return found;
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(Hyperparameter decay, const ops::Variable& num_updates,
                                                   bool zero_debias, std::string name)
    : decay_(std::move(decay)),
      fixed_rate_(decay_.is_fixed() ? static_cast<double>(1.0f - static_cast<float>(decay_.value())) : 0.0),
      num_updates_(num_updates),
      zero_debias_(zero_debias),
      name_(std::move(name)) {}

Output ExponentialMovingAverage::Rate(Graph& graph) {
  if (decay_.is_fixed() && !num_updates_.valid()) return {};
  if (!num_updates_.valid()) return 1.0f - decay_.For({}, DType::kFloat32, "decay");
  const ColocateWith beside(graph, *num_updates_.handle().node);
  const Output count = ops::Cast(num_updates_.Read(), DType::kFloat32);
  const Output decay = decay_.For(num_updates_, DType::kFloat32, "decay");
  return 1.0f - ops::Minimum(decay, (count + 1.0f) / (count + 10.0f));
}

Output ExponentialMovingAverage::RateFor(const ops::Variable& variable, const Output& rate) {
  if (!rate.valid()) return fixed_rate_.For(variable, "decay");
  return rate.dtype() == variable.dtype() ? rate : ops::Cast(rate, variable.dtype());
}

ops::Variable ExponentialMovingAverage::MakeShadow(const ops::Variable& variable) {
  ops::Variable& shadow = of_variables_[variable.info()];
  if (shadow.valid()) return shadow;
  Graph& graph = variable.graph();
  // An initializer must not wait for the step's updates.
  const ControlDependencies none(graph, nullptr);
  const ColocateWith beside(graph, *variable.handle().node);
  shadow = MakePlainVariable(graph, variable.name() + "/" + name_, variable.dtype(), variable.shape(),
                             variable.info()->local, [&variable] { return InitializedValue(variable); });
  if (const std::optional<RowsOfVariable>& rows = variable.info()->rows_of) {
    shadow.info()->rows_of = {rows->name + shadow.name().substr(variable.name().size()), rows->shape, rows->first_row};
  }
  return shadow;
}

void ExponentialMovingAverage::MakeShadow(const Output& value) {
  ops::Variable& shadow = of_values_[{value.node, value.index}];
  if (shadow.valid()) return;
  if (!value.shape().IsFullyDefined()) {
    throw InvalidArgumentError(StrCat("[train/moving_averages] expected a value of fully known shape; '",
                                      value.node->name(), "' has the shape ", value.shape()));
  }
  Graph& graph = value.graph();
  const std::string name = value.node->name() + "/" + name_;
  shadow = MakeZeros(graph, name, value.dtype(), value.shape());
  if (!zero_debias_) return;
  const ColocateWith beside(graph, *shadow.handle().node);
  biased_[{value.node, value.index}] = {MakeZeros(graph, name + "/biased", value.dtype(), value.shape()),
                                        MakeZeros(graph, name + "/local_step", value.dtype(), Shape())};
}

Node* ExponentialMovingAverage::Apply(Graph& graph) { return Apply(TrainableOf(graph)); }

Node* ExponentialMovingAverage::Apply(const std::vector<ops::Variable>& variables) {
  const std::vector<ops::Variable> all = ops::PartsOf(variables);
  if (all.empty()) {
    throw InvalidArgumentError(StrCat("[train/moving_averages] expected variables to average; ", name_, " got none"));
  }
  for (const ops::Variable& variable : all) {
    ExpectFloating(variable.dtype(), variable.name());
    MakeShadow(variable);
  }
  Graph& graph = all[0].graph();
  const NameScope scope(graph, name_);
  const Output rate = Rate(graph);
  std::vector<Node*> updates;
  for (const ops::Variable& variable : all) {
    const ops::Variable& shadow = of_variables_.at(variable.info());
    const ColocateWith beside(graph, *shadow.handle().node);
    updates.push_back(Move(shadow, variable.Read(), RateFor(shadow, rate)));
  }
  return ops::Group(graph, updates, "update");
}

Node* ExponentialMovingAverage::ApplyToValues(const std::vector<Output>& values) {
  if (values.empty()) {
    throw InvalidArgumentError(StrCat("[train/moving_averages] expected values to average; ", name_, " got none"));
  }
  Graph& graph = values[0].graph();
  {
    const ControlDependencies none(graph, nullptr);
    for (const Output& value : values) {
      ExpectFloating(value.dtype(), value.node->name());
      MakeShadow(value);
    }
  }
  const NameScope scope(graph, name_);
  const Output rate = Rate(graph);
  std::vector<Node*> updates;
  for (const Output& value : values) {
    const ops::Variable& shadow = of_values_.at({value.node, value.index});
    const ColocateWith beside(graph, *shadow.handle().node);
    const Output own_rate = RateFor(shadow, rate);
    const auto biased = biased_.find({value.node, value.index});
    updates.push_back(biased == biased_.end() ? Move(shadow, value, own_rate)
                                              : UpdateBiased(shadow, biased->second, value, own_rate));
  }
  return ops::Group(graph, updates, "update");
}

Node* ExponentialMovingAverage::UpdateBiased(const ops::Variable& shadow, const Biased& biased, const Output& value,
                                             const Output& rate) {
  const Output old = biased.average.Read();
  const Output moved = old - (old - value) * rate;
  const Output step = biased.local_step.Read() + 1.0f;
  const Output factor = 1.0f - ops::Pow(1.0f - rate, step);
  return ops::Group(shadow.graph(), {biased.average.Assign(moved), biased.local_step.Assign(step),
                                     shadow.Assign(moved / factor, "AssignMovingAvg")});
}

ops::Variable ExponentialMovingAverage::average(const ops::Variable& variable) const {
  const auto found = of_variables_.find(variable.info());
  return found == of_variables_.end() ? ops::Variable() : found->second;
}

ops::Variable ExponentialMovingAverage::average(const Output& value) const {
  const auto found = of_values_.find({value.node, value.index});
  return found == of_values_.end() ? ops::Variable() : found->second;
}

std::string ExponentialMovingAverage::average_name(const ops::Variable& variable) const {
  const ops::Variable shadow = average(variable);
  return shadow.valid() ? shadow.name() : variable.name() + "/" + name_;
}

std::map<std::string, ops::Variable> ExponentialMovingAverage::variables_to_restore(const Graph& graph) const {
  std::vector<ops::Variable> averaged = TrainableOf(graph);
  for (const auto& [info, shadow] : of_variables_) {
    if (!info->trainable && !info->local) averaged.emplace_back(info);
  }
  return variables_to_restore(graph, averaged);
}

std::map<std::string, ops::Variable> ExponentialMovingAverage::variables_to_restore(
    const Graph& graph, const std::vector<ops::Variable>& averaged) const {
  std::map<std::string, ops::Variable> names;
  std::set<const VariableInfo*> listed;
  for (const ops::Variable& variable : ops::PartsOf(averaged)) {
    names[average_name(variable)] = variable;
    listed.insert(variable.info());
  }
  for (VariableInfo* info : graph.variables()) {
    if (!info->local && !listed.contains(info)) names.try_emplace(info->name, info);
  }
  return names;
}

}  // namespace cohort::train
