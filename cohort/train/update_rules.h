// The update rules of Cohort's optimizers. Programs use them through the classes in optimizer.h and the functions in
// keras/optimizers/optimizer.h. The formulas are those of the ops in ops/training.h. Internal to train/ and keras/.
#pragma once

#include <vector>

#include "cohort/train/update_rule.h"

namespace cohort::train {

UpdateRulePtr GradientDescentRule(SparseForm sparse_form);
// The slot is "momentum".
UpdateRulePtr MomentumRule(const NamedNumber& momentum, bool use_nesterov);
// Keras's formula: the gradient is multiplied by the learning rate before it is added to the momentum. The slot is
// "momentum". The rule changes every row, so the optimizer makes sparse gradients dense.
UpdateRulePtr KerasMomentumRule(const NamedNumber& momentum, bool use_nesterov);
// The slot is "accumulator".
UpdateRulePtr AdagradRule(double initial_accumulator_value);
// Keras's formula: `epsilon` is added inside of the root. The slot is "accumulator".
UpdateRulePtr KerasAdagradRule(double initial_accumulator_value, const NamedNumber& epsilon);
// The slots are "m", "v" and, if `amsgrad`, "vhat". The betas must be numbers, not values of the graph.
UpdateRulePtr AdamRule(const NamedNumber& beta1, const NamedNumber& beta2, const NamedNumber& epsilon,
                       bool amsgrad = false);
// AdamRule without `amsgrad`, but a sparse gradient changes only its rows, and the moments of the others do not decay.
UpdateRulePtr LazyAdamRule(const NamedNumber& beta1, const NamedNumber& beta2, const NamedNumber& epsilon);

// The argument of RMSPropRule.
struct RMSPropForm {
  NamedNumber decay, momentum, epsilon;
  bool centered = false;
  // "rms", "momentum" and, if `centered`, "mg". TensorFlow and Keras order these slots differently and begin them with
  // different values.
  std::vector<std::vector<Slot>> slots;
  SparseForm sparse_form;
};
UpdateRulePtr RMSPropRule(const RMSPropForm& form);

struct FtrlNumbers {
  NamedNumber l1, l2, learning_rate_power, l2_shrinkage;
  NamedNumber half_beta;  // if it is not 0, half_beta / learning_rate is added to l2
};
// The slots are "accum" and "linear". `sparse_form` is kDense or kUniqueRows.
UpdateRulePtr FtrlRule(double initial_accumulator_value, const FtrlNumbers& numbers, SparseForm sparse_form);

// The rules below change every row, so the optimizer makes sparse gradients dense. They are in composed_rules.cc.
// a = rho a + (1 - rho) g^2;  d = g sqrt(b + epsilon) / sqrt(a + epsilon);  b = rho b + (1 - rho) d^2;  var -= lr d.
// The slots are a, "accum", and b, "accum_update".
UpdateRulePtr AdadeltaRule(const NamedNumber& rho, const NamedNumber& epsilon);
// m += (g - m)(1 - beta1);  u = max(beta2 u, |g|);  var -= lr m / ((1 - beta1^t)(u + epsilon)). The slots are "m" and
// "u".
UpdateRulePtr AdamaxRule(const NamedNumber& beta1, const NamedNumber& beta2, const NamedNumber& epsilon);
// var -= lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g. The slot is "m".
UpdateRulePtr LionRule(const NamedNumber& beta1, const NamedNumber& beta2);
// Adam with Nesterov's momentum, as Keras has it (keras/optimizers/optimizer.h). The slots are "m" and "v".
UpdateRulePtr NadamRule(const NamedNumber& beta1, const NamedNumber& beta2, const NamedNumber& epsilon);

// Returns `rule` with a decoupled weight decay before each update: var -= var * rate * learning_rate.
UpdateRulePtr WithWeightDecay(UpdateRulePtr rule, const NamedNumber& rate);
// Returns `rule` with further slots, which come before its own ones and which it does not use. An optimizer makes them
// in the order of the list: the first one for all variables, then the second one for all variables.
UpdateRulePtr WithSlots(UpdateRulePtr rule, std::vector<Slot> slots);

}  // namespace cohort::train
