// The optimizers of optimizer.h: TensorFlow's arguments and slots for the rules of update_rules.h.
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/train/optimizer.h"
#include "cohort/train/update_rules.h"

namespace cohort::train {
namespace {

UpdateRulePtr CheckedAdagradRule(double initial_accumulator_value) {
  if (!(initial_accumulator_value > 0.0)) {
    throw InvalidArgumentError(
        StrCat("[train/optimizer] initial_accumulator_value must be positive; got ", initial_accumulator_value));
  }
  return AdagradRule(initial_accumulator_value);
}

std::vector<std::vector<Slot>> RMSPropSlots(bool centered) {
  if (centered) return {{{"rms", 1.0}, {"mg"}, {"momentum"}}};
  return {{{"rms", 1.0}, {"momentum"}}};
}

UpdateRulePtr CheckedFtrlRule(const FtrlOptions& options) {
  if (options.learning_rate_power > 0.0) {
    throw InvalidArgumentError(
        StrCat("[train/optimizer] learning_rate_power ", options.learning_rate_power, " needs to be negative or zero"));
  }
  const std::pair<const char*, double> not_negative[] = {
      {"initial_accumulator_value", options.initial_accumulator_value},
      {"l1_regularization_strength", options.l1_regularization_strength},
      {"l2_regularization_strength", options.l2_regularization_strength},
      {"l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength}};
  for (const auto& [name, value] : not_negative) {
    if (value < 0.0) {
      throw InvalidArgumentError(StrCat("[train/optimizer] ", name, " ", value, " needs to be positive or zero"));
    }
  }
  return FtrlRule(
      options.initial_accumulator_value,
      {.l1 = {"l1_regularization_strength", options.l1_regularization_strength},
       .l2 = {"l2_regularization_strength", options.l2_regularization_strength},
       .learning_rate_power = {"learning_rate_power", options.learning_rate_power},
       .l2_shrinkage = {"l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength},
       .half_beta = {"half_beta", options.beta / 2.0}},
      SparseForm::kUniqueRows);
}

}  // namespace

GradientDescentOptimizer::GradientDescentOptimizer(Hyperparameter learning_rate, const std::string& name)
    : Optimizer(name, std::move(learning_rate), GradientDescentRule(SparseForm::kAnyRows)) {}

MomentumOptimizer::MomentumOptimizer(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov,
                                     const std::string& name)
    : Optimizer(name, std::move(learning_rate), MomentumRule({"momentum", std::move(momentum)}, use_nesterov)) {}

AdagradOptimizer::AdagradOptimizer(Hyperparameter learning_rate, double initial_accumulator_value,
                                   const std::string& name)
    : Optimizer(name, std::move(learning_rate), CheckedAdagradRule(initial_accumulator_value)) {}

AdadeltaOptimizer::AdadeltaOptimizer(Hyperparameter learning_rate, Hyperparameter rho, Hyperparameter epsilon,
                                     const std::string& name)
    : Optimizer(name, std::move(learning_rate),
                AdadeltaRule({"rho", std::move(rho)}, {"epsilon", std::move(epsilon)})) {}

AdamOptimizer::AdamOptimizer(Hyperparameter learning_rate, Hyperparameter beta1, Hyperparameter beta2,
                             Hyperparameter epsilon, const std::string& name)
    : Optimizer(name, std::move(learning_rate),
                AdamRule({"beta1", std::move(beta1)}, {"beta2", std::move(beta2)}, {"epsilon", std::move(epsilon)})) {}

LazyAdamOptimizer::LazyAdamOptimizer(Hyperparameter learning_rate, Hyperparameter beta1, Hyperparameter beta2,
                                     Hyperparameter epsilon, const std::string& name)
    : Optimizer(
          name, std::move(learning_rate),
          LazyAdamRule({"beta1", std::move(beta1)}, {"beta2", std::move(beta2)}, {"epsilon", std::move(epsilon)})) {}

FtrlOptimizer::FtrlOptimizer(Hyperparameter learning_rate, const FtrlOptions& options)
    : Optimizer(options.name, std::move(learning_rate), CheckedFtrlRule(options)) {}

RMSPropOptimizer::RMSPropOptimizer(Hyperparameter learning_rate, Hyperparameter decay, Hyperparameter momentum,
                                   Hyperparameter epsilon, bool centered, const std::string& name)
    : Optimizer(name, std::move(learning_rate),
                RMSPropRule({.decay = {"decay", std::move(decay)},
                             .momentum = {"momentum", std::move(momentum)},
                             .epsilon = {"epsilon", std::move(epsilon)},
                             .centered = centered,
                             .slots = RMSPropSlots(centered),
                             .sparse_form = SparseForm::kUniqueRows})) {}

}  // namespace cohort::train
