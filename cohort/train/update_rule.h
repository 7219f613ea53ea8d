// UpdateRule: how an optimizer changes one variable by its gradient. A rule names the slots of the variable and adds
// the update op. The optimizers of train/ and of keras/ both run rules; Cohort's own ones are in update_rules.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/train/hyperparameter.h"

namespace cohort::train {

class Optimizer;

// A slot that a rule wants for each variable.
struct COHORT_EXPORT Slot {
  std::string name;
  double initial = 0.0;
  // false: scratch memory of the op. The next step does not need its value, so checkpoints leave it out.
  bool saved = true;
};

// A number that a rule uses. The numbers of a rule have different names. A fixed number (Hyperparameter::is_fixed)
// becomes one constant with this name for each device and dtype.
struct COHORT_EXPORT NamedNumber {
  std::string name;
  Hyperparameter value;
};

// What a rule accepts as a sparse gradient.
enum class SparseForm {
  kDense,       // nothing: the optimizer makes the gradient dense, because the rule changes every row
  kUniqueRows,  // rows that each appear once: the optimizer sums repeated rows first
  kAnyRows,     // any rows
};

// The arguments of UpdateRule::Update, which adds the update of one variable. An optimizer makes it; it is valid during
// the call of Update. learning_rate, Number and Power return scalars of the variable's dtype. Variables of one device
// share the constants of fixed numbers.
class COHORT_EXPORT UpdateArgs {
 public:
  const ops::Variable& variable() const { return variable_; }
  // Returns the variable's handle.
  Output var() const { return variable_.handle(); }
  // Returns the gradient, with the variable's dtype. It is sparse only if the rule's sparse_form() allows it.
  const Gradient& gradient() const { return gradient_; }
  // Returns the handle of a slot. Throws InvalidArgumentError if it is not one of the rule's slots().
  Output slot(const std::string& name) const;
  Output learning_rate() const;
  Output Number(const NamedNumber& number) const;
  // Returns base^t in update t = 1, 2, ... Throws InvalidArgumentError if `base` is not one of the rule's powers().
  Output Power(const NamedNumber& base) const;

 private:
  friend class Optimizer;
  UpdateArgs(Optimizer& optimizer, const ops::Variable& variable, const Gradient& gradient)
      : optimizer_(optimizer), variable_(variable), gradient_(gradient) {}

  Optimizer& optimizer_;
  const ops::Variable& variable_;
  const Gradient& gradient_;
};

// The base of rules. A rule is immutable. Threads and graphs may share a rule whose numbers are all fixed.
class COHORT_EXPORT UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Returns the slots, in the order in which they are made and saved. An optimizer makes the slots of the first list
  // for all variables, then those of the second list for all variables, and so on. For the variables x and y and the
  // result {{m, v}, {vhat}}, the order is: m of x, v of x, m of y, v of y, vhat of x, vhat of y.
  virtual std::vector<std::vector<Slot>> slots() const { return {}; }
  // Returns the fixed numbers whose powers Update uses.
  virtual std::vector<NamedNumber> powers() const { return {}; }
  virtual SparseForm sparse_form() const { return SparseForm::kDense; }
  // Returns a number that Keras's files have behind the slots, as a float32 scalar. `updates` is the number of updates
  // so far, a float32 scalar. Keras's face of the optimizer keeps the number in a variable, and Update does not read
  // it. An empty Output means that the files have no such number.
  virtual Output NumberInFiles(const Output& updates) const { return {}; }
  // Adds the nodes of the update, and returns the node that changes the variable. The scopes of the graph decide names
  // and devices.
  virtual Node* Update(const UpdateArgs& args) const = 0;
};

using UpdateRulePtr = std::shared_ptr<const UpdateRule>;

}  // namespace cohort::train
