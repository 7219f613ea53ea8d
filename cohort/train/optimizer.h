// Optimizers, after TensorFlow's v1 classes. An optimizer computes the gradients of a loss and adds one update op for
// each variable, by an UpdateRule. A slot is a variable that belongs to another variable, such as its momentum. Updates
// and slots are on the device of their variable. The slot of the variable "w" is called "w/Momentum", or "w/Adam" and
// "w/Adam_1". The formulas are in ops/training.h.
// A sparse gradient changes only the rows that it has. If several of its rows have the same index, the update uses
// their sum. Adam is an exception: its moments decay in every row, so Adam makes the gradient dense. LazyAdam does not.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/train/hyperparameter.h"
#include "cohort/train/update_rule.h"

namespace cohort::train {

// A variable and its gradient.
struct COHORT_EXPORT GradientAndVariable {
  Gradient gradient;  // gradient.exists() may be false
  ops::Variable variable;
};

// Runs an update rule. An optimizer adds nodes to the graph of its variables; the values of its slots live in sessions.
// The program owns it. Only one thread at a time may use it.
class COHORT_EXPORT Optimizer {
 public:
  // An optimizer with a rule of the program's own. The names of the slots and of the update contain `name`. If
  // `iterations` (an integer scalar, the number of updates so far) is given, the powers of UpdateRule::powers() are
  // computed from it. Otherwise they are variables of the optimizer, such as "beta1_power". Throws InvalidArgumentError
  // if `rule` is null, or if the base of a power is a value of the graph and not a number.
  Optimizer(std::string name, Hyperparameter learning_rate, UpdateRulePtr rule, Output iterations = {});
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::string& name() const { return name_; }

  // Returns the gradients of `loss` (of its sum, if it is not a scalar) for `variables`. If `variables` is empty, takes
  // the gradients for all trainable variables of the graph. Throws InvalidArgumentError if the graph has none.
  std::vector<GradientAndVariable> ComputeGradients(Output loss,
                                                    const std::vector<ops::Variable>& variables = {}) const;
  // Adds nodes that update the variables that have a gradient. If `global_step` is given, adds a node that adds 1 to it
  // after the updates. Returns the last of these nodes: a step that has it as a target makes all the updates. Throws
  // InvalidArgumentError, with the names of the variables, if none has a gradient.
  Node* ApplyGradients(const std::vector<GradientAndVariable>& gradients, const ops::Variable& global_step = {});
  // As ApplyGradients without a global step, but the updates are made only in steps in which `condition` (a bool
  // scalar) is true. Sparse gradients are made dense. Throws FailedPreconditionError if the constructor got no
  // `iterations`.
  Node* ApplyGradientsIf(const Output& condition, const std::vector<GradientAndVariable>& gradients);
  // Makes the slots that the updates by these gradients need and that do not exist yet. Throws InvalidArgumentError if
  // no variable has a gradient.
  void MakeSlotsFor(const std::vector<GradientAndVariable>& gradients) { MakeSlots(WithGradients(gradients)); }
  // Calls ComputeGradients, then ApplyGradients.
  Node* Minimize(Output loss, const ops::Variable& global_step = {}, const std::vector<ops::Variable>& variables = {});

  // Returns the slot `slot` ("momentum", "accumulator", "m", ...) of a variable. It is not valid() if the slot does not
  // exist yet.
  ops::Variable slot(const ops::Variable& variable, const std::string& slot) const;
  std::vector<std::string> slot_names() const;
  // Returns all slots and other variables that the optimizer has made, in the order in which they were made.
  const std::vector<ops::Variable>& variables() const { return own_; }
  // Returns those of variables() that a file needs: all except slots that are not `saved`.
  const std::vector<ops::Variable>& saved_variables() const { return saved_; }

 private:
  friend class UpdateArgs;

  // Makes the slots and powers of these variables that do not exist yet.
  void MakeSlots(const std::vector<ops::Variable>& variables);
  void MakeSlot(const ops::Variable& variable, const Slot& slot);
  // Makes the float32 scalar "<base>_power", on the device of `beside`.
  ops::Variable MakePower(const NamedNumber& base, const ops::Variable& beside);
  Node* Update(const GradientAndVariable& pair);
  Node* UpdateIf(const Output& condition, const GradientAndVariable& pair);
  // Returns the variables that have a gradient. Throws InvalidArgumentError if there is none.
  std::vector<ops::Variable> WithGradients(const std::vector<GradientAndVariable>& gradients) const;
  // Adds the nodes that multiply the powers after all `updates`. Returns the nodes that the step must wait for.
  std::vector<Node*> AdvancePowers(const std::vector<Node*>& updates);

  // Return a number as a scalar for an update of `variable`. Power throws InvalidArgumentError if `base` is not one of
  // the rule's powers().
  Output Number(const NamedNumber& number, const ops::Variable& variable);
  Output Power(const NamedNumber& base, const ops::Variable& variable);

  const std::string name_;
  Hyperparameter learning_rate_;
  const UpdateRulePtr rule_;
  const Output iterations_;
  // The numbers used so far. Each makes its constants once. Two numbers may have one name and different values, because
  // a rule does not know the names of the rule that it contains.
  std::vector<NamedNumber> numbers_;
  std::map<std::string, ops::Variable> powers_;        // by the base's name; empty if `iterations_` is given
  std::map<std::string, Hyperparameter> step_powers_;  // by the base's name; computed from `iterations_`
  std::map<std::pair<VariableInfo*, std::string>, ops::Variable> slots_;
  std::vector<ops::Variable> own_;
  std::vector<ops::Variable> saved_;
};

// Returns the gradient with rows of equal index summed, so that indices are unique. The graph's scopes decide the
// device of the nodes.
COHORT_EXPORT Gradient SumRepeatedRows(const Gradient& gradient);

// Scales all gradients by the factor clip_norm / max(norm, clip_norm), so that their global norm (ops::GlobalNorm) is
// at most `clip_norm`. As in TensorFlow, sparse gradients stay sparse, and repeated rows are not summed for the norm. A
// variable without a gradient still has none. If the norm is infinite or NaN, every gradient becomes NaN. If
// `global_norm` is not null, it gets the norm before clipping. Throws InvalidArgumentError if `clip_norm` is not
// positive or if there is no gradient.
COHORT_EXPORT std::vector<GradientAndVariable> ClipByGlobalNorm(const std::vector<GradientAndVariable>& gradients,
                                                                float clip_norm, Output* global_norm = nullptr);

// Gradient descent. It has no slots.
class COHORT_EXPORT GradientDescentOptimizer final : public Optimizer {
 public:
  explicit GradientDescentOptimizer(Hyperparameter learning_rate, const std::string& name = "GradientDescent");
};

// Gradient descent with momentum. Its slot is "momentum".
class COHORT_EXPORT MomentumOptimizer final : public Optimizer {
 public:
  MomentumOptimizer(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov = false,
                    const std::string& name = "Momentum");
};

// Adagrad. Its slot is "accumulator". The constructor throws InvalidArgumentError for an initial value that is not
// positive.
class COHORT_EXPORT AdagradOptimizer final : public Optimizer {
 public:
  explicit AdagradOptimizer(Hyperparameter learning_rate, double initial_accumulator_value = 0.1,
                            const std::string& name = "Adagrad");
};

// Adam. Its slots are "m" and "v". The powers of beta1 and beta2 are variables "beta1_power" and "beta2_power".
class COHORT_EXPORT AdamOptimizer final : public Optimizer {
 public:
  explicit AdamOptimizer(Hyperparameter learning_rate = 0.001, Hyperparameter beta1 = 0.9, Hyperparameter beta2 = 0.999,
                         Hyperparameter epsilon = 1e-8, const std::string& name = "Adam");
};

// Adam, but a step changes only the rows of a sparse gradient, and their moments: the moments of other rows do not
// decay. So a step with a large embedding costs what its rows cost, and rows that are rare are changed by other amounts
// than with Adam (TensorFlow Addons' LazyAdam). Slots and powers are Adam's, but for the name: with the name "Adam" a
// training goes on from a checkpoint of AdamOptimizer.
class COHORT_EXPORT LazyAdamOptimizer final : public Optimizer {
 public:
  explicit LazyAdamOptimizer(Hyperparameter learning_rate = 0.001, Hyperparameter beta1 = 0.9,
                             Hyperparameter beta2 = 0.999, Hyperparameter epsilon = 1e-8,
                             const std::string& name = "LazyAdam");
};

// The options of FtrlOptimizer.
struct COHORT_EXPORT FtrlOptions {
  double learning_rate_power = -0.5;       // at most 0; 0: the rate does not fall
  double initial_accumulator_value = 0.1;  // at least 0, as are the strengths
  double l1_regularization_strength = 0.0;
  double l2_regularization_strength = 0.0;
  double l2_shrinkage_regularization_strength = 0.0;
  double beta = 0.0;
  std::string name = "Ftrl";
};
// FTRL. Its slots are "accum" and "linear". With p = -learning_rate_power: a' = accum + g^2;
// linear += g + 2 l2_shrinkage var - (a'^p - accum^p) var / lr; q = a'^p / lr + 2 (l2 + beta / (2 lr));
// var = (clip(linear, -l1, l1) - linear) / q; accum = a'. The constructor throws InvalidArgumentError for numbers out
// of range.
class COHORT_EXPORT FtrlOptimizer final : public Optimizer {
 public:
  explicit FtrlOptimizer(Hyperparameter learning_rate, const FtrlOptions& options = {});
};

// RMSProp. Its slots are "rms" (initially 1), "momentum" and, if `centered`, "mg".
class COHORT_EXPORT RMSPropOptimizer final : public Optimizer {
 public:
  explicit RMSPropOptimizer(Hyperparameter learning_rate, Hyperparameter decay = 0.9, Hyperparameter momentum = 0.0,
                            Hyperparameter epsilon = 1e-10, bool centered = false, const std::string& name = "RMSProp");
};

// Adadelta. Its slots are "accum" and "accum_update". A sparse gradient is made dense, because the slots of all rows
// change in each step.
class COHORT_EXPORT AdadeltaOptimizer final : public Optimizer {
 public:
  explicit AdadeltaOptimizer(Hyperparameter learning_rate = 0.001, Hyperparameter rho = 0.95,
                             Hyperparameter epsilon = 1e-8, const std::string& name = "Adadelta");
};

}  // namespace cohort::train
