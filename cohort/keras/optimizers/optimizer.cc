// What all of Keras's optimizers do: their variables, clipping and the form in files. train::Optimizer runs the rule.
#include "cohort/keras/optimizers/optimizer.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/clip.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/train/update_rules.h"

namespace cohort::keras {

GraphOptimizer::GraphOptimizer(Graph& graph, const CommonOptions& options, train::UpdateRulePtr rule)
    : options_(options) {
  const NameScope scope(graph, options.name);
  iterations_ = ops::Variable(graph, Tensor::Scalar(int64_t{0}), {.name = "iteration", .trainable = false});
  if (const LearningRateSchedulePtr& schedule = options.learning_rate.schedule()) {
    learning_rate_ = schedule->At(iterations_.value());
    if (learning_rate_.dtype() != DType::kFloat32) learning_rate_ = ops::Cast(learning_rate_, DType::kFloat32);
  } else {
    const auto rate = static_cast<float>(options.learning_rate.value());
    rate_variable_ = ops::Variable(graph, Tensor::Scalar(rate), {.name = "learning_rate", .trainable = false});
    learning_rate_ = rate_variable_.value();
  }
  if (options.weight_decay) rule = train::WithWeightDecay(std::move(rule), {"weight_decay", *options.weight_decay});
  optimizer_ = std::make_unique<train::Optimizer>(options.name, learning_rate_, std::move(rule), iterations_.value());
}

Node* GraphOptimizer::Apply(const std::vector<train::GradientAndVariable>& gradients) {
  return optimizer_->ApplyGradients(Clip(gradients), iterations_);
}

std::vector<ops::Variable> GraphOptimizer::variables() const {
  std::vector<ops::Variable> all = {iterations_};
  if (rate_variable_.valid()) all.push_back(rate_variable_);
  const std::vector<ops::Variable>& slots = optimizer_->saved_variables();
  all.insert(all.end(), slots.begin(), slots.end());
  return all;
}

std::vector<train::GradientAndVariable> GraphOptimizer::Clip(std::vector<train::GradientAndVariable> pairs) const {
  if (!options_.clipnorm && !options_.clipvalue && !options_.global_clipnorm) return pairs;
  std::vector<Gradient> gradients;
  for (train::GradientAndVariable& pair : pairs) {
    // The norm counts each row once.
    if (pair.gradient.is_sparse()) pair.gradient = train::SumRepeatedRows(pair.gradient);
    gradients.push_back(pair.gradient);
  }
  if (options_.global_clipnorm) {
    gradients = ops::ClipByGlobalNorm(gradients, static_cast<float>(*options_.global_clipnorm)).gradients;
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    Gradient& gradient = gradients[i];
    if (gradient.exists() && options_.clipnorm) {
      gradient.values = ops::ClipByNorm(gradient.values, static_cast<float>(*options_.clipnorm));
    } else if (gradient.exists() && options_.clipvalue) {
      const Output limit = ops::ScalarLike(gradient.values, *options_.clipvalue);
      gradient.values = ops::ClipByValue(gradient.values, -limit, limit);
    }
    pairs[i].gradient = gradient;
  }
  return pairs;
}

Optimizer::Optimizer(std::string class_name, CommonOptions options, train::UpdateRulePtr rule,
                     ConfigValue::Object config)
    : class_name_(std::move(class_name)),
      options_(std::move(options)),
      rule_(std::move(rule)),
      config_(std::move(config)) {}

std::unique_ptr<GraphOptimizer> Optimizer::Make(Graph& graph) const {
  return std::make_unique<GraphOptimizer>(graph, options_, rule_);
}

ConfigValue Optimizer::Serialized() const {
  if (class_name_.empty()) {
    throw UnimplementedError(
        StrCat("[keras/optimizer] '", name(), "' is an optimizer of the program's own, which a file cannot describe"));
  }
  const LearningRateSchedulePtr& schedule = options_.learning_rate.schedule();
  ConfigValue::Object config = {
      {"name", options_.name},
      {"learning_rate", schedule ? schedule->Serialized() : ConfigValue(options_.learning_rate.value())},
      {"weight_decay", options_.weight_decay},
      {"clipnorm", options_.clipnorm},
      {"global_clipnorm", options_.global_clipnorm},
      {"clipvalue", options_.clipvalue},
      {"use_ema", false},
      {"ema_momentum", 0.99},
      {"ema_overwrite_frequency", nullptr},
      {"loss_scale_factor", nullptr},
      {"gradient_accumulation_steps", nullptr},
  };
  config.insert(config.end(), config_.begin(), config_.end());
  return SerializedObject("keras.optimizers", class_name_, std::move(config));
}

}  // namespace cohort::keras
