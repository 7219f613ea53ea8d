// The optimizers of optimizer.h: for each class its slots and the ops that update a variable by a dense or a sparse
// gradient.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"
#include "cohort/train/optimizer.h"

namespace cohort::train {

GradientDescentOptimizer::GradientDescentOptimizer(Hyperparameter learning_rate, const std::string& name)
    : Optimizer(name), learning_rate_(std::move(learning_rate)) {}

Node* GradientDescentOptimizer::ApplyDense(Output gradient, const ops::Variable& variable) {
  return ops::ResourceApplyGradientDescent(variable.handle(), learning_rate_.For(variable, "learning_rate"), gradient);
}
Node* GradientDescentOptimizer::ApplySparse(const Gradient& gradient, const ops::Variable& variable) {
  const Output step = ops::Mul(gradient.values, learning_rate_.For(variable, "learning_rate"));
  return ops::ResourceScatterSub(variable.handle(), gradient.indices, step);
}

MomentumOptimizer::MomentumOptimizer(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov,
                                     const std::string& name)
    : Optimizer(name),
      learning_rate_(std::move(learning_rate)),
      momentum_(std::move(momentum)),
      use_nesterov_(use_nesterov) {}

void MomentumOptimizer::CreateSlots(const std::vector<ops::Variable>& variables) {
  for (const ops::Variable& variable : variables) MakeSlot(variable, "momentum", 0.0);
}
Node* MomentumOptimizer::ApplyDense(Output gradient, const ops::Variable& variable) {
  return ops::ResourceApplyMomentum(variable.handle(), SlotHandle(variable, "momentum"),
                                    learning_rate_.For(variable, "learning_rate"), gradient,
                                    momentum_.For(variable, "momentum"), use_nesterov_);
}
Node* MomentumOptimizer::ApplySparse(const Gradient& gradient, const ops::Variable& variable) {
  return ops::ResourceSparseApplyMomentum(variable.handle(), SlotHandle(variable, "momentum"),
                                          learning_rate_.For(variable, "learning_rate"), gradient.values,
                                          gradient.indices, momentum_.For(variable, "momentum"), use_nesterov_);
}

AdagradOptimizer::AdagradOptimizer(Hyperparameter learning_rate, double initial_accumulator_value,
                                   const std::string& name)
    : Optimizer(name), learning_rate_(std::move(learning_rate)), initial_accumulator_value_(initial_accumulator_value) {
  if (!(initial_accumulator_value > 0.0)) {
    throw InvalidArgumentError(
        StrCat("[train/optimizer] initial_accumulator_value must be positive; got ", initial_accumulator_value));
  }
}

void AdagradOptimizer::CreateSlots(const std::vector<ops::Variable>& variables) {
  for (const ops::Variable& variable : variables) MakeSlot(variable, "accumulator", initial_accumulator_value_);
}
Node* AdagradOptimizer::ApplyDense(Output gradient, const ops::Variable& variable) {
  return ops::ResourceApplyAdagrad(variable.handle(), SlotHandle(variable, "accumulator"),
                                   learning_rate_.For(variable, "learning_rate"), gradient);
}
Node* AdagradOptimizer::ApplySparse(const Gradient& gradient, const ops::Variable& variable) {
  return ops::ResourceSparseApplyAdagrad(variable.handle(), SlotHandle(variable, "accumulator"),
                                         learning_rate_.For(variable, "learning_rate"), gradient.values,
                                         gradient.indices);
}

AdamOptimizer::AdamOptimizer(Hyperparameter learning_rate, Hyperparameter beta1, Hyperparameter beta2,
                             Hyperparameter epsilon, const std::string& name)
    : Optimizer(name),
      learning_rate_(std::move(learning_rate)),
      beta1_(std::move(beta1)),
      beta2_(std::move(beta2)),
      epsilon_(std::move(epsilon)) {
  if (!beta1_.is_fixed() || !beta2_.is_fixed()) {
    throw InvalidArgumentError(
        "[train/optimizer] expected beta1 and beta2 of Adam as numbers, since their powers are "
        "variables that start from them; got values of a graph");
  }
}

void AdamOptimizer::CreateSlots(const std::vector<ops::Variable>& variables) {
  if (!beta1_power_.valid()) {
    const ops::Variable& first =
        *std::min_element(variables.begin(), variables.end(),
                          [](const ops::Variable& a, const ops::Variable& b) { return a.name() < b.name(); });
    beta1_power_ = MakeScalar("beta1_power", beta1_.value(), first);
    beta2_power_ = MakeScalar("beta2_power", beta2_.value(), first);
  }
  for (const ops::Variable& variable : variables) {
    MakeSlot(variable, "m", 0.0);
    MakeSlot(variable, "v", 0.0);
  }
}

Node* AdamOptimizer::ApplyDense(Output gradient, const ops::Variable& variable) {
  const auto power = [&](const ops::Variable& value) {
    return value.dtype() == variable.dtype() ? value.value() : ops::Cast(value.value(), variable.dtype());
  };
  const ops::AdamScalars scalars = {
      power(beta1_power_),           power(beta2_power_),           learning_rate_.For(variable, "learning_rate"),
      beta1_.For(variable, "beta1"), beta2_.For(variable, "beta2"), epsilon_.For(variable, "epsilon")};
  return ops::ResourceApplyAdam(variable.handle(), SlotHandle(variable, "m"), SlotHandle(variable, "v"), scalars,
                                gradient);
}

// The moments of every row decay, even if the row has no gradient.
Node* AdamOptimizer::ApplySparse(const Gradient& gradient, const ops::Variable& variable) {
  return ApplyDense(ToDense(gradient), variable);
}

std::vector<Node*> AdamOptimizer::Finish(const std::vector<Node*>& updates) {
  Graph& graph = beta1_power_.graph();
  const ColocateWith beside(graph, *beta1_power_.handle().node);
  const Output next1 = ops::Mul(beta1_power_.value(), beta1_.For(beta1_power_, "beta1"));
  const Output next2 = ops::Mul(beta2_power_.value(), beta2_.For(beta2_power_, "beta2"));
  const ControlDependencies after(graph, updates);
  std::vector<Node*> all = updates;
  all.push_back(ops::AssignVariableOp(beta1_power_.handle(), next1));
  all.push_back(ops::AssignVariableOp(beta2_power_.handle(), next2));
  return all;
}

RMSPropOptimizer::RMSPropOptimizer(Hyperparameter learning_rate, Hyperparameter decay, Hyperparameter momentum,
                                   Hyperparameter epsilon, bool centered, const std::string& name)
    : Optimizer(name),
      learning_rate_(std::move(learning_rate)),
      decay_(std::move(decay)),
      momentum_(std::move(momentum)),
      epsilon_(std::move(epsilon)),
      centered_(centered) {}

void RMSPropOptimizer::CreateSlots(const std::vector<ops::Variable>& variables) {
  for (const ops::Variable& variable : variables) {
    MakeSlot(variable, "rms", 1.0);
    if (centered_) MakeSlot(variable, "mg", 0.0);
    MakeSlot(variable, "momentum", 0.0);
  }
}

Node* RMSPropOptimizer::ApplyDense(Output gradient, const ops::Variable& variable) {
  const ops::RMSPropScalars scalars = {learning_rate_.For(variable, "learning_rate"), decay_.For(variable, "decay"),
                                       momentum_.For(variable, "momentum"), epsilon_.For(variable, "epsilon")};
  const Output rms = SlotHandle(variable, "rms");
  const Output momentum = SlotHandle(variable, "momentum");
  if (!centered_) return ops::ResourceApplyRMSProp(variable.handle(), rms, momentum, scalars, gradient);
  return ops::ResourceApplyCenteredRMSProp(variable.handle(), SlotHandle(variable, "mg"), rms, momentum, scalars,
                                           gradient);
}

Node* RMSPropOptimizer::ApplySparse(const Gradient& gradient, const ops::Variable& variable) {
  const ops::RMSPropScalars scalars = {learning_rate_.For(variable, "learning_rate"), decay_.For(variable, "decay"),
                                       momentum_.For(variable, "momentum"), epsilon_.For(variable, "epsilon")};
  const Output rms = SlotHandle(variable, "rms");
  const Output momentum = SlotHandle(variable, "momentum");
  if (!centered_) {
    return ops::ResourceSparseApplyRMSProp(variable.handle(), rms, momentum, scalars, gradient.values,
                                           gradient.indices);
  }
  return ops::ResourceSparseApplyCenteredRMSProp(variable.handle(), SlotHandle(variable, "mg"), rms, momentum, scalars,
                                                 gradient.values, gradient.indices);
}

}  // namespace cohort::train
