// Optimizers, after TensorFlow's v1 classes: gradients of a loss, and one update op for each variable. Updates and
// slots (variables such as a momentum, one for each variable) stand on the device of their variable; the slot of
// variable "w" is called "w/Momentum", of Adam "w/Adam" and "w/Adam_1". Formulas: ops/training.h.
//
// Sparse gradients change only their rows; rows whose index repeats are summed first. (Adam is the exception: its
// moments fade in every row, so it makes the gradient dense.)
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

namespace cohort::train {

struct COHORT_EXPORT GradientAndVariable {
  Gradient gradient;  // may be none
  ops::Variable variable;
};

// For one graph and one thread at a time. Adds nodes when called; holds no values itself.
class COHORT_EXPORT Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::string& name() const { return name_; }

  // Gradients of `loss` (its sum, if it is no scalar) for `variables`; none given: all trainable ones of the graph.
  // Throws InvalidArgumentError where there is no variable at all.
  std::vector<GradientAndVariable> ComputeGradients(Output loss,
                                                    const std::vector<ops::Variable>& variables = {}) const;
  // Updates the variables that have a gradient, then adds 1 to `global_step` where one is given. The node has run when
  // all this is done. Throws InvalidArgumentError that lists the variables where none has a gradient.
  Node* ApplyGradients(const std::vector<GradientAndVariable>& gradients, const ops::Variable& global_step = {});
  // Both.
  Node* Minimize(Output loss, const ops::Variable& global_step = {}, const std::vector<ops::Variable>& variables = {});

  // The slot `slot` ("momentum", "accumulator", "m", ...) of a variable; !valid() where there is none (yet).
  ops::Variable slot(const ops::Variable& variable, const std::string& slot) const;
  std::vector<std::string> slot_names() const;
  // All variables of its own, in the order of creation.
  const std::vector<ops::Variable>& variables() const { return own_; }

 protected:
  explicit Optimizer(std::string name) : name_(std::move(name)) {}

  // Called with all variables that are about to be updated, before any update is added.
  virtual void CreateSlots(const std::vector<ops::Variable>& variables) {}
  virtual Node* ApplyDense(Output gradient, const ops::Variable& variable) = 0;
  // The indices are unique unless AllowsRepeats().
  virtual Node* ApplySparse(const Gradient& gradient, const ops::Variable& variable) = 0;
  virtual bool AllowsRepeats() const { return false; }
  // Adds what has to happen once after all `updates`; returns the nodes to wait for.
  virtual std::vector<Node*> Finish(const std::vector<Node*>& updates) { return updates; }

  // Makes the slot, filled with `initial`, unless it exists.
  void MakeSlot(const ops::Variable& variable, const std::string& slot, double initial);
  // A float32 scalar that belongs to no single variable, beside `beside`.
  ops::Variable MakeScalar(const std::string& name, double initial, const ops::Variable& beside);
  // Handle of a slot that CreateSlots has made.
  Output SlotHandle(const ops::Variable& variable, const std::string& slot) const;

 private:
  Node* Update(const GradientAndVariable& pair);

  const std::string name_;
  std::map<std::pair<VariableInfo*, std::string>, ops::Variable> slots_;
  std::vector<ops::Variable> own_;
};

// Rows of equal index summed: unique indices. The nodes stand where the scopes say.
COHORT_EXPORT Gradient SumRepeatedRows(const Gradient& gradient);

// Scales all gradients by one factor, clip_norm / max(norm, clip_norm), so that their global norm (ops::GlobalNorm) is
// at most `clip_norm`; with TensorFlow's semantics: sparse gradients stay sparse and count their rows as they are,
// variables without a gradient stay without, and a norm that is infinite or NaN makes every gradient NaN.
// `global_norm`: gets the norm before clipping, if it is not null. Throws InvalidArgumentError if `clip_norm` is not
// positive or if there is no gradient.
COHORT_EXPORT std::vector<GradientAndVariable> ClipByGlobalNorm(const std::vector<GradientAndVariable>& gradients,
                                                                float clip_norm, Output* global_norm = nullptr);

class COHORT_EXPORT GradientDescentOptimizer final : public Optimizer {
 public:
  explicit GradientDescentOptimizer(Hyperparameter learning_rate, const std::string& name = "GradientDescent");

 protected:
  Node* ApplyDense(Output gradient, const ops::Variable& variable) override;
  Node* ApplySparse(const Gradient& gradient, const ops::Variable& variable) override;
  bool AllowsRepeats() const override { return true; }

 private:
  Hyperparameter learning_rate_;
};

// Slot "momentum".
class COHORT_EXPORT MomentumOptimizer final : public Optimizer {
 public:
  MomentumOptimizer(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov = false,
                    const std::string& name = "Momentum");

 protected:
  void CreateSlots(const std::vector<ops::Variable>& variables) override;
  Node* ApplyDense(Output gradient, const ops::Variable& variable) override;
  Node* ApplySparse(const Gradient& gradient, const ops::Variable& variable) override;

 private:
  Hyperparameter learning_rate_;
  Hyperparameter momentum_;
  const bool use_nesterov_;
};

// Slot "accumulator". Throws InvalidArgumentError for an initial value that is not positive.
class COHORT_EXPORT AdagradOptimizer final : public Optimizer {
 public:
  explicit AdagradOptimizer(Hyperparameter learning_rate, double initial_accumulator_value = 0.1,
                            const std::string& name = "Adagrad");

 protected:
  void CreateSlots(const std::vector<ops::Variable>& variables) override;
  Node* ApplyDense(Output gradient, const ops::Variable& variable) override;
  Node* ApplySparse(const Gradient& gradient, const ops::Variable& variable) override;

 private:
  Hyperparameter learning_rate_;
  const double initial_accumulator_value_;
};

// Slots "m" and "v"; the powers of beta1 and beta2 are variables "beta1_power" and "beta2_power".
class COHORT_EXPORT AdamOptimizer final : public Optimizer {
 public:
  explicit AdamOptimizer(Hyperparameter learning_rate = 0.001, Hyperparameter beta1 = 0.9, Hyperparameter beta2 = 0.999,
                         Hyperparameter epsilon = 1e-8, const std::string& name = "Adam");

 protected:
  void CreateSlots(const std::vector<ops::Variable>& variables) override;
  Node* ApplyDense(Output gradient, const ops::Variable& variable) override;
  Node* ApplySparse(const Gradient& gradient, const ops::Variable& variable) override;
  bool AllowsRepeats() const override { return true; }
  std::vector<Node*> Finish(const std::vector<Node*>& updates) override;

 private:
  Hyperparameter learning_rate_;
  Hyperparameter beta1_;
  Hyperparameter beta2_;
  Hyperparameter epsilon_;
  ops::Variable beta1_power_;
  ops::Variable beta2_power_;
};

// Slots "rms" (initially 1), "momentum" and, where centered, "mg".
class COHORT_EXPORT RMSPropOptimizer final : public Optimizer {
 public:
  explicit RMSPropOptimizer(Hyperparameter learning_rate, Hyperparameter decay = 0.9, Hyperparameter momentum = 0.0,
                            Hyperparameter epsilon = 1e-10, bool centered = false, const std::string& name = "RMSProp");

 protected:
  void CreateSlots(const std::vector<ops::Variable>& variables) override;
  Node* ApplyDense(Output gradient, const ops::Variable& variable) override;
  Node* ApplySparse(const Gradient& gradient, const ops::Variable& variable) override;

 private:
  Hyperparameter learning_rate_;
  Hyperparameter decay_;
  Hyperparameter momentum_;
  Hyperparameter epsilon_;
  const bool centered_;
};

}  // namespace cohort::train
