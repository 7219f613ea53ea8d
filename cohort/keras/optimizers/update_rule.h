// UpdateRule: the part of an optimizer that differs from other optimizers of Keras: its slots and its update of one
// variable. Internal to keras/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/train/hyperparameter.h"
#include "cohort/train/optimizer.h"

namespace cohort::keras {

// The options that all optimizers have; update_rule.cc checks them.
struct CommonOptions {
  std::string name;
  LearningRate learning_rate;
  std::optional<double> weight_decay, clipnorm, clipvalue, global_clipnorm;
};
template <typename Options>
CommonOptions CommonOf(const Options& options, const char* name) {
  return {options.name.empty() ? name : options.name,
          options.learning_rate,
          options.weight_decay,
          options.clipnorm,
          options.clipvalue,
          options.global_clipnorm};
}

// A slot that a rule needs for each variable.
struct Slot {
  std::string name;
  double initial = 0.0;
  bool keras_has_it = true;  // false: the op needs the slot, but Keras's optimizer does not have it
};

// The arguments of a rule when it adds the update of one variable. The scalars that the functions return have the
// variable's dtype and are on its device. Valid during one call of Dense or Sparse.
class UpdateArgs {
 public:
  // Scalars that several variables share, by name. They are made once for each graph.
  using Shared = std::map<std::string, train::Hyperparameter>;
  UpdateArgs(const ops::Variable& variable, const Gradient& gradient, std::map<std::string, Output> slots,
             Output iterations, Shared* shared)
      : variable_(variable), gradient_(gradient), slots_(std::move(slots)), iterations_(iterations), shared_(shared) {}

  Output var() const { return variable_.handle(); }
  Output slot(const std::string& name) const { return slots_.at(name); }
  const Gradient& gradient() const { return gradient_; }
  Output learning_rate() const { return shared_->at("learning_rate").For(variable_, "learning_rate"); }
  Output Number(const std::string& name, double value) const;
  // Returns base^(iterations + 1).
  Output Power(const std::string& name, double base) const;

 private:
  const ops::Variable& variable_;
  const Gradient& gradient_;
  const std::map<std::string, Output> slots_;
  const Output iterations_;
  Shared* const shared_;
};

// The base of rules. Immutable and thread-safe. An Optimizer and its GraphOptimizers share ownership.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Returns the slots in Keras's order. For each inner list, the slots of all variables are made before the next list
  // begins.
  virtual std::vector<std::vector<Slot>> slots() const { return {}; }
  virtual Node* Dense(const UpdateArgs& args) const = 0;
  // Adds the update by a sparse gradient, in which each row appears at most once. It is called only if has_sparse() is
  // true. If that is false, sparse gradients are made dense, because Keras's rule changes every row.
  virtual Node* Sparse(const UpdateArgs&) const { return nullptr; }
  virtual bool has_sparse() const { return false; }
  // Returns the class's configuration without the options that all optimizers have.
  virtual ConfigValue::Object config() const = 0;
};

// Throws InvalidArgumentError for options out of range.
OptimizerPtr MakeOptimizer(const std::string& class_name, CommonOptions common, std::shared_ptr<const UpdateRule> rule);

// Throws InvalidArgumentError "[keras/optimizer] NAME expected WHAT ..." if `holds` is false.
void Require(bool holds, const std::string& optimizer, const char* what, double got);

}  // namespace cohort::keras
