// Optimizers with Keras 3's names, arguments and defaults. An Optimizer is an immutable description that threads may
// share. Make() adds an optimizer with its own variables to a graph. If each replica has its own copies of the
// variables, Make is called once for each replica; if replicas share variables, it is called once. Optimizers differ in
// their update rule (train/update_rule.h). The formulas in the comments are Keras's; g is the gradient and lr the
// learning rate. Two names side by side are multiplied.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/files/config.h"
#include "cohort/keras/optimizers/averages_change.h"
#include "cohort/keras/optimizers/learning_rate_schedule.h"
#include "cohort/ops/variables.h"
#include "cohort/train/optimizer.h"

namespace cohort::keras {

// The options that all optimizers have. At most one of the three clips may be set.
struct COHORT_EXPORT CommonOptions {
  LearningRate learning_rate = 0.001;
  std::optional<double> weight_decay = std::nullopt;     // var -= var * weight_decay * lr, before the rule's formula
  std::optional<double> clipnorm = std::nullopt;         // scales each gradient down to this norm
  std::optional<double> clipvalue = std::nullopt;        // clips each element to [-clipvalue, clipvalue]
  std::optional<double> global_clipnorm = std::nullopt;  // scales all gradients together down to this norm
  // true: keeps a moving average of each trained weight, which each Apply changes: average = m average + (1 - m) var,
  // with m = ema_momentum (in [0, 1]), or m = 0 as long as no update was made before. At the end of Fit the weights get
  // the values of their averages.
  bool use_ema = false;
  double ema_momentum = 0.99;
  // n, at least 1: the weights also get the values of their averages after each n-th update. Only with use_ema. A
  // ParameterServerStrategy refuses it.
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  // The loss is multiplied by this number (StepContext::ScaleLoss) and the gradients are divided by it, so that small
  // gradients do not vanish in mixed precision.
  std::optional<double> loss_scale_factor = std::nullopt;
  // n, at least 2: adds up the gradients of n steps, and updates the weights in each n-th step by their mean. Clips and
  // weight decay work on this mean. A schedule of the rate still counts steps. The sums are dense, also for sparse
  // gradients, and each has the memory of its weight.
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  // The name of the optimizer's variables. OptimizerFromRule requires it. For the other functions, "" means the default
  // name of the optimizer ("adam").
  std::string name = "";
};

// An optimizer in a graph, for the variables of one replica. Optimizer::Make makes it, and the caller of Make owns it.
// Its graph must outlive it. Only one thread at a time may use it.
class COHORT_EXPORT GraphOptimizer {
 public:
  // `several_workers`: see Optimizer::Make.
  GraphOptimizer(Graph& graph, const CommonOptions& options, train::UpdateRulePtr rule, bool several_workers);
  GraphOptimizer(const GraphOptimizer&) = delete;
  GraphOptimizer& operator=(const GraphOptimizer&) = delete;

  // Adds the update of all variables that have a gradient: clips, decays weights, updates, then adds 1 to the
  // iterations. When the returned node has run, all this is done. `gradients` must be the gradients of the whole global
  // batch. Also makes the slots, each on the device of its variable, unless an earlier call has made them: if the step
  // exists once for each worker of a ClusterCoordinator, each of them has a call. Throws InvalidArgumentError if no
  // variable has a gradient.
  Node* Apply(const std::vector<train::GradientAndVariable>& gradients);
  // Returns the number of updates so far: an int64 scalar. With gradient_accumulation_steps it counts the steps, also
  // those that only add up gradients.
  ops::Variable iterations() const { return iterations_; }
  // Returns the variable of the learning rate, a float32 scalar. It is not valid() if the rate follows a schedule.
  ops::Variable learning_rate_variable() const { return rate_variable_; }
  // Returns the rate of the next update, a float32 scalar: the value of the variable or of the schedule.
  Output learning_rate() const { return learning_rate_; }
  // Returns the node that makes this change to the weights and their moving averages; adds it at the first call. Throws
  // FailedPreconditionError before Apply, and without CommonOptions::use_ema.
  Node* ChangeAverages(AveragesChange change);
  bool uses_ema() const { return options_.use_ema; }
  // Returns the variables that Keras saves, in Keras's order: iterations, learning rate (if it is a variable), then the
  // averages, then the sums of gradients, then the slots of the rule (all after Apply), then the number that the rule
  // has in files (UpdateRule::NumberInFiles), if there is one. The slots of a variable's parts are one variable here,
  // which has them as parts(). So files do not depend on how variables are divided among parameter servers.
  std::vector<ops::Variable> variables() const;

 private:
  // Adds the gradients to the sums, and in each n-th step updates the weights by the means. Returns the last node.
  Node* Accumulate(const std::vector<train::GradientAndVariable>& gradients);
  // Adds the update of the averages after `update`. Returns the last node.
  Node* UpdateAverages(Node* update, const std::vector<train::GradientAndVariable>& gradients);
  std::vector<Node*> MakeChange(AveragesChange change) const;
  // Sets slots_ if Apply has made new slots.
  void CollectSlots(const std::vector<train::GradientAndVariable>& gradients);
  std::vector<train::GradientAndVariable> Clip(std::vector<train::GradientAndVariable> pairs) const;

  const CommonOptions options_;
  ops::Variable iterations_;
  Output updates_;  // of the weights so far: iterations_, divided by gradient_accumulation_steps
  ops::Variable rate_variable_;
  Output learning_rate_;
  Output next_number_in_files_;  // its value after the next update; not valid if there is none
  ops::Variable number_in_files_;
  std::unique_ptr<train::Optimizer> optimizer_;
  std::vector<ops::Variable> averaged_;  // the weights with an average
  std::map<AveragesChange, Node*> changes_;
  size_t collected_ = 0;              // how many saved variables of optimizer_ slots_ is made of
  std::vector<ops::Variable> slots_;  // of whole variables
  const bool several_workers_;
};

// The description of an optimizer: an update rule with its options. The functions below make it. Immutable and
// thread-safe. Programs and models share ownership (OptimizerPtr).
class COHORT_EXPORT Optimizer {
 public:
  // `class_name` and `config` (the options that are not in CommonOptions) are the form in Keras's files. If
  // `class_name` is empty, this is an optimizer of the program's own. Requires: `rule` is not null; `options` has a
  // name; all numbers are in range.
  Optimizer(std::string class_name, CommonOptions options, train::UpdateRulePtr rule, ConfigValue::Object config);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::string& name() const { return options_.name; }
  const CommonOptions& options() const { return options_; }
  // Adds the variables "<name>/iteration" and, if the rate does not follow a schedule, "<name>/learning_rate" in the
  // current scopes of `graph`. Returns the optimizer of the graph. `several_workers`: whether several steps may run at
  // the same time with the same variables. Then their updates of a moving average add up, and none replaces another
  // one.
  std::unique_ptr<GraphOptimizer> Make(Graph& graph, bool several_workers = false) const;
  // Returns the form in Keras's files; serialization.h does the reverse. The learning rate in it is always the one with
  // which the optimizer was described, even if a program has set another rate in a graph.
  // Throws UnimplementedError for an optimizer or a schedule of the program's own.
  ConfigValue Serialized() const;

 private:
  const std::string class_name_;
  const CommonOptions options_;
  const train::UpdateRulePtr rule_;
  const ConfigValue::Object config_;
};

using OptimizerPtr = std::shared_ptr<const Optimizer>;

// The functions that describe an optimizer throw InvalidArgumentError for numbers out of range. Every options struct
// has the fields of CommonOptions.

struct COHORT_EXPORT SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0.0;  // in [0, 1]
  bool nesterov = false;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};
// If momentum is 0: var -= lr g. Otherwise: m = momentum m - lr g, and then var += m. With nesterov, the second formula
// is var += momentum m - lr g.
COHORT_EXPORT OptimizerPtr SGD(const SGDOptions& options = {});

struct COHORT_EXPORT AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
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
  // True: a step changes only the rows of an embedding that it has looked up, and the moments of other rows do not
  // decay (TensorFlow Addons' LazyAdam). So a step with a large embedding costs what its rows cost. But weight_decay,
  // use_ema and gradient_accumulation_steps still change all rows. Keras has no such option: a file with it can be
  // loaded there with compile=False. Not together with amsgrad.
  bool lazy = false;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};
// t = iterations + 1; alpha = lr sqrt(1 - beta_2^t) / (1 - beta_1^t); m += (g - m)(1 - beta_1); v += (g^2 - v)(1 -
// beta_2); var -= alpha m / (sqrt(v) + epsilon). With amsgrad, the last formula uses the largest v so far instead of v.
COHORT_EXPORT OptimizerPtr Adam(const AdamOptions& options = {});
// Adam with a weight_decay of 0.004 if none is set.
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
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};
// s = rho s + (1 - rho) g^2; d = s + epsilon; b = momentum b + lr g / sqrt(d); var -= b.
// With centered, also a = rho a + (1 - rho) g, and d = s - a^2 + epsilon.
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
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};
// p = learning_rate_power; a' = a + g^2; z = z + g + 2 * shrinkage * var - var * (a'^(-p) - a^(-p)) / lr;
// q = a'^(-p) / lr + 2 * (l2 + beta / (2 * lr)); var = (clip(z, -l1, l1) - z) / q; a = a'.
// l1, l2 and shrinkage are the three regularization strengths. a begins as initial_accumulator_value, z as 0.
COHORT_EXPORT OptimizerPtr Ftrl(const FtrlOptions& options = {});

struct COHORT_EXPORT NadamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};
// t = iterations + 1; u_i = beta_1 (1 - 0.96^i / 2); p = u_1 u_2 ... u_t; m += (g - m)(1 - beta_1);
// v += (g^2 - v)(1 - beta_2); n = u_(t+1) m / (1 - p u_(t+1)) + (1 - u_t) g / (1 - p);
// var -= lr n / (sqrt(v / (1 - beta_2^t)) + epsilon)
COHORT_EXPORT OptimizerPtr Nadam(const NadamOptions& options = {});

struct COHORT_EXPORT AdamaxOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};
// t = iterations + 1; m += (g - m)(1 - beta_1); u = max(beta_2 u, |g|); var -= lr m / ((1 - beta_1^t)(u + epsilon))
COHORT_EXPORT OptimizerPtr Adamax(const AdamaxOptions& options = {});

struct COHORT_EXPORT LionOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;  // in (0, 1]
  double beta_2 = 0.99;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};
// var -= lr sign(beta_1 m + (1 - beta_1) g); m = beta_2 m + (1 - beta_2) g
COHORT_EXPORT OptimizerPtr Lion(const LionOptions& options = {});

struct COHORT_EXPORT AdadeltaOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.95;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};
// a = rho a + (1 - rho) g^2; d = g sqrt(b + epsilon) / sqrt(a + epsilon); b = rho b + (1 - rho) d^2; var -= lr d
COHORT_EXPORT OptimizerPtr Adadelta(const AdadeltaOptions& options = {});

// Describes an optimizer of the program's own. If the update uses powers of a number (UpdateRule::powers in
// train/update_rule.h), each power is number^(iterations + 1). Throws InvalidArgumentError if `options` has no name, if
// `rule` is null, or if it has a slot "average" with use_ema, or a slot "gradient_accumulator" with
// gradient_accumulation_steps.
COHORT_EXPORT OptimizerPtr OptimizerFromRule(train::UpdateRulePtr rule, const CommonOptions& options);

// Returns an optimizer by Keras's name, in upper or lower case ("adam", "SGD"), with the defaults above. Throws
// InvalidArgumentError that lists all names if there is no such optimizer.
COHORT_EXPORT OptimizerPtr OptimizerByName(const std::string& name);
COHORT_EXPORT std::vector<std::string> OptimizerNames();

// An argument of Compile: an optimizer or its name.
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
