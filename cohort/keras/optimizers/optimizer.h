// Optimizers with Keras 3's names, arguments and defaults. An Optimizer is an immutable description, shared between
// threads; Make() puts one of its kind into a graph, with variables of its own, once for each replica's set of
// variables. Formulas: those of Keras, in the comments below; g is the gradient, lr the learning rate.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/files/config.h"
#include "cohort/keras/optimizers/learning_rate_schedule.h"
#include "cohort/ops/variables.h"
#include "cohort/train/optimizer.h"

namespace cohort::keras {

// An optimizer in a graph, for one replica's variables. For one thread at a time; it lives as long as its graph.
class COHORT_EXPORT GraphOptimizer {
 public:
  virtual ~GraphOptimizer() = default;
  // Clips, decays, updates all variables that have a gradient, then adds 1 to the iterations. The node has run when
  // all this is done. `gradients` are those of the whole global batch. Slots are made by the first call, beside their
  // variables. Throws InvalidArgumentError where no variable has a gradient. To be called once.
  virtual Node* Apply(const std::vector<train::GradientAndVariable>& gradients) = 0;
  // Updates so far: int64 scalar.
  virtual ops::Variable iterations() const = 0;
  // float32 scalar; !valid() where the rate follows a schedule.
  virtual ops::Variable learning_rate_variable() const = 0;
  // The rate of the next update, a float32 scalar: the variable's value or the schedule's.
  virtual Output learning_rate() const = 0;
  // What Keras saves, in its order: iterations, learning rate (if a variable), then the slots (after Apply).
  virtual std::vector<ops::Variable> variables() const = 0;
};

class COHORT_EXPORT Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::string& name() const { return name_; }
  // Adds the variables "<name>/iteration" and "<name>/learning_rate" under the open scopes of `graph`.
  virtual std::unique_ptr<GraphOptimizer> Make(Graph& graph) const = 0;
  // As Keras's files hold it, with the learning rate as it was described; serialization.h has the reverse. Throws
  // UnimplementedError for an optimizer or a schedule of the program's own.
  virtual ConfigValue Serialized() const;

 protected:
  explicit Optimizer(std::string name) : name_(std::move(name)) {}

 private:
  const std::string name_;
};

using OptimizerPtr = std::shared_ptr<const Optimizer>;

// The last five options are those of every optimizer; at most one of the three clips may be set:
//   weight_decay     var -= var weight_decay lr, before the gradient's step
//   clipnorm         each gradient is scaled down to this norm
//   clipvalue        each element is clipped to [-clipvalue, clipvalue]
//   global_clipnorm  all gradients together are scaled down to this norm
//   name             "": the optimizer's own ("adam")
// Numbers out of range are InvalidArgumentErrors when the optimizer is described.

struct COHORT_EXPORT SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0.0;  // in [0, 1]
  bool nesterov = false;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  std::string name = "";
};
// momentum 0: var -= lr g. Else m = momentum m - lr g; var += m, with Nesterov: var += momentum m - lr g.
COHORT_EXPORT OptimizerPtr SGD(const SGDOptions& options = {});

struct COHORT_EXPORT AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  std::string name = "";
};
// a += g^2; var -= lr g / sqrt(a + epsilon)
COHORT_EXPORT OptimizerPtr Adagrad(const AdagradOptions& options = {});

struct COHORT_EXPORT AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  std::string name = "";
};
// t = iterations + 1; alpha = lr sqrt(1 - beta_2^t) / (1 - beta_1^t); m += (g - m)(1 - beta_1);
// v += (g^2 - v)(1 - beta_2); var -= alpha m / (sqrt(v) + epsilon), with amsgrad the largest v so far in place of v.
COHORT_EXPORT OptimizerPtr Adam(const AdamOptions& options = {});
// Adam with a weight_decay of 0.004 where none is set.
COHORT_EXPORT OptimizerPtr AdamW(const AdamOptions& options = {});

struct COHORT_EXPORT RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;
  double momentum = 0.0;
  double epsilon = 1e-7;
  bool centered = false;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  std::string name = "";
};
// s = rho s + (1 - rho) g^2; d = s + epsilon, centered: d = s - a^2 + epsilon with a = rho a + (1 - rho) g;
// b = momentum b + lr g / sqrt(d); var -= b
COHORT_EXPORT OptimizerPtr RMSprop(const RMSpropOptions& options = {});

struct COHORT_EXPORT FtrlOptions {
  LearningRate learning_rate = 0.001;
  double learning_rate_power = -0.5;  // at most 0
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0.0;
  double l2_regularization_strength = 0.0;
  double l2_shrinkage_regularization_strength = 0.0;
  double beta = 0.0;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  std::string name = "";
};
// p = learning_rate_power; a' = a + g^2; z += g + 2 shrinkage var - (a'^-p - a^-p) / lr var;
// q = a'^-p / lr + 2 (l2 + beta / (2 lr)); var = (clip(z, -l1, l1) - z) / q; a = a'
COHORT_EXPORT OptimizerPtr Ftrl(const FtrlOptions& options = {});

// By Keras's names, in any case ("adam", "SGD"), with the defaults above. Throws InvalidArgumentError that lists the
// names there are.
COHORT_EXPORT OptimizerPtr OptimizerByName(const std::string& name);
COHORT_EXPORT std::vector<std::string> OptimizerNames();

// What Compile takes: an optimizer or its name.
class COHORT_EXPORT OptimizerArgument {
 public:
  OptimizerArgument() = default;
  OptimizerArgument(OptimizerPtr optimizer) : optimizer_(std::move(optimizer)) {}
  OptimizerArgument(const char* name) : optimizer_(OptimizerByName(name)) {}
  OptimizerArgument(const std::string& name) : optimizer_(OptimizerByName(name)) {}
  const OptimizerPtr& get() const { return optimizer_; }
  explicit operator bool() const { return optimizer_ != nullptr; }

 private:
  OptimizerPtr optimizer_;
};

}  // namespace cohort::keras
