// What the kernels of dense and sparse updates share. Files *.cu include it.
#pragma once

#include <string>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/kernels/training.cu.h"
#include "cohort/backends/cuda/kernels/update_rules.h"
#include "cohort/core/error.h"

namespace cohort::cuda {

template <template <typename> class Rule>
struct RuleTag {};

// Calls fn(RuleTag<R>()) for the rule's template R, of a rule that has updates of rows. Throws InternalError for
// others.
template <typename Fn>
void ForRulesOfRows(OptimizerRule rule, const Fn& fn) {
  switch (rule) {
    case OptimizerRule::kMomentum: return fn(RuleTag<MomentumRule>());
    case OptimizerRule::kKerasMomentum: return fn(RuleTag<KerasMomentumRule>());
    case OptimizerRule::kAdagrad: return fn(RuleTag<AdagradRule>());
    case OptimizerRule::kAdagradV2: return fn(RuleTag<AdagradV2Rule>());
    case OptimizerRule::kKerasAdagrad: return fn(RuleTag<KerasAdagradRule>());
    case OptimizerRule::kAdam: return fn(RuleTag<AdamRule>());
    case OptimizerRule::kRMSProp: return fn(RuleTag<RMSPropRule>());
    case OptimizerRule::kCenteredRMSProp: return fn(RuleTag<CenteredRMSPropRule>());
    case OptimizerRule::kFtrl: return fn(RuleTag<FtrlRule>());
    case OptimizerRule::kFtrlV2: return fn(RuleTag<FtrlV2Rule>());
    default: break;
  }
  throw InternalError("[backends/cuda] expected a rule that has updates of rows; got rule " +
                      std::to_string(static_cast<int>(rule)));
}

// Calls fn(RuleTag<R>()) for the rule's template R.
template <typename Fn>
void ForRules(OptimizerRule rule, const Fn& fn) {
  switch (rule) {
    case OptimizerRule::kGradientDescent: return fn(RuleTag<GradientDescentRule>());
    case OptimizerRule::kWeightDecay: return fn(RuleTag<WeightDecayRule>());
    case OptimizerRule::kAmsgrad: return fn(RuleTag<AmsgradRule>());
    default: return ForRulesOfRows(rule, fn);
  }
}

// Reads the scalars, which have the type T, and makes the rule.
template <template <typename> class Rule, typename T>
COHORT_KERNEL Rule<Wide<T>> MakeRule(const RuleArgs& args) {
  using W = Wide<T>;
  W scalars[Rule<W>::kScalars];
  for (int k = 0; k < Rule<W>::kScalars; ++k) scalars[k] = static_cast<W>(*static_cast<const T*>(args.scalars[k]));
  return Rule<W>(scalars, args.flag);
}

}  // namespace cohort::cuda
