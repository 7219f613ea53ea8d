// Optimizers, after TensorFlow's v1 classes. An optimizer computes the gradients of a loss and adds one update op for
// each variable. A slot is a variable that belongs to another variable, such as its momentum. Updates and slots are on
// the device of their variable. The slot of the variable "w" is called "w/Momentum", or "w/Adam" and "w/Adam_1". The
// formulas are in ops/training.h.
// Sparse gradients change only their rows. Rows with equal indices are summed first. Adam is an exception: its moments
// decay in every row, so Adam makes the gradient dense.
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

// A variable and its gradient.
struct COHORT_EXPORT GradientAndVariable {
  Gradient gradient;  // gradient.exists() may be false
  ops::Variable variable;
};

// The base of the optimizers. An optimizer adds nodes to the graph of its variables; the values of its slots live in
// sessions. The program owns it. Only one thread at a time may use it.
class COHORT_EXPORT Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::string& name() const { return name_; }

  // Returns the gradients of `loss` (of its sum, if it is not a scalar) for `variables`. If `variables` is empty, these
  // are all trainable variables of the graph. Throws InvalidArgumentError if there is no variable.
  std::vector<GradientAndVariable> ComputeGradients(Output loss,
                                                    const std::vector<ops::Variable>& variables = {}) const;
  // Adds nodes that update the variables that have a gradient. If `global_step` is given, the nodes then add 1 to it.
  // When the returned node has run, all this is done. Throws InvalidArgumentError that lists the variables if none has
  // a gradient.
  Node* ApplyGradients(const std::vector<GradientAndVariable>& gradients, const ops::Variable& global_step = {});
  // Calls ComputeGradients, then ApplyGradients.
  Node* Minimize(Output loss, const ops::Variable& global_step = {}, const std::vector<ops::Variable>& variables = {});

  // Returns the slot `slot` ("momentum", "accumulator", "m", ...) of a variable. It is not valid() if the slot does not
  // exist yet.
  ops::Variable slot(const ops::Variable& variable, const std::string& slot) const;
  std::vector<std::string> slot_names() const;
  // Returns all slots and other variables that the optimizer has made, in the order in which they were made.
  const std::vector<ops::Variable>& variables() const { return own_; }

 protected:
  explicit Optimizer(std::string name) : name_(std::move(name)) {}

  // Makes the slots. It is called with all variables that will be updated, before any update is added.
  virtual void CreateSlots(const std::vector<ops::Variable>& variables) {}
  // Adds the update by a dense gradient.
  virtual Node* ApplyDense(Output gradient, const ops::Variable& variable) = 0;
  // Adds the update by a sparse gradient. Its indices are unique, unless AllowsRepeats() returns true.
  virtual Node* ApplySparse(const Gradient& gradient, const ops::Variable& variable) = 0;
  virtual bool AllowsRepeats() const { return false; }
  // Adds nodes that must run once after all `updates`. Returns the nodes that the step must wait for.
  virtual std::vector<Node*> Finish(const std::vector<Node*>& updates) { return updates; }

  // Makes the slot if it does not exist. All its elements begin with `initial`.
  void MakeSlot(const ops::Variable& variable, const std::string& slot, double initial);
  // Makes a float32 scalar variable that all updates share, on the device of `beside`.
  ops::Variable MakeScalar(const std::string& name, double initial, const ops::Variable& beside);
  // Returns the handle of a slot. Requires: CreateSlots has made it.
  Output SlotHandle(const ops::Variable& variable, const std::string& slot) const;

 private:
  Node* Update(const GradientAndVariable& pair);

  const std::string name_;
  std::map<std::pair<VariableInfo*, std::string>, ops::Variable> slots_;
  std::vector<ops::Variable> own_;
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

 protected:
  Node* ApplyDense(Output gradient, const ops::Variable& variable) override;
  Node* ApplySparse(const Gradient& gradient, const ops::Variable& variable) override;
  bool AllowsRepeats() const override { return true; }

 private:
  Hyperparameter learning_rate_;
};

// Gradient descent with momentum. Its slot is "momentum".
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

// Adagrad. Its slot is "accumulator". The constructor throws InvalidArgumentError for an initial value that is not
// positive.
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

// Adam. Its slots are "m" and "v". The powers of beta1 and beta2 are variables "beta1_power" and "beta2_power".
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

// RMSProp. Its slots are "rms" (initially 1), "momentum" and, if `centered`, "mg".
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
