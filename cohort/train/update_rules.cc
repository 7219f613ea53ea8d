// The rules of update_rules.h: for each its slots, and the op that updates a variable by a dense or a sparse gradient.
#include "cohort/train/update_rules.h"

#include <utility>

#include "cohort/ops/arithmetic.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"

namespace cohort::train {
namespace {

class GradientDescent final : public UpdateRule {
 public:
  explicit GradientDescent(SparseForm sparse_form) : sparse_form_(sparse_form) {}
  SparseForm sparse_form() const override { return sparse_form_; }
  Node* Update(const UpdateArgs& a) const override {
    const Gradient& g = a.gradient();
    if (!g.is_sparse()) return ops::ResourceApplyGradientDescent(a.var(), a.learning_rate(), g.values);
    return ops::ResourceScatterSub(a.var(), g.indices, ops::Mul(g.values, a.learning_rate()));
  }

 private:
  const SparseForm sparse_form_;
};

class Momentum final : public UpdateRule {
 public:
  Momentum(const NamedNumber& momentum, bool use_nesterov) : momentum_(momentum), use_nesterov_(use_nesterov) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"momentum"}}}; }
  SparseForm sparse_form() const override { return SparseForm::kUniqueRows; }
  Node* Update(const UpdateArgs& a) const override {
    const Gradient& g = a.gradient();
    const Output slot = a.slot("momentum"), rate = a.learning_rate(), momentum = a.Number(momentum_);
    if (!g.is_sparse()) return ops::ResourceApplyMomentum(a.var(), slot, rate, g.values, momentum, use_nesterov_);
    return ops::ResourceSparseApplyMomentum(a.var(), slot, rate, g.values, g.indices, momentum, use_nesterov_);
  }

 private:
  const NamedNumber momentum_;
  const bool use_nesterov_;
};

class KerasMomentum final : public UpdateRule {
 public:
  KerasMomentum(const NamedNumber& momentum, bool use_nesterov) : momentum_(momentum), use_nesterov_(use_nesterov) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"momentum"}}}; }
  Node* Update(const UpdateArgs& a) const override {
    return ops::ResourceApplyKerasMomentum(a.var(), a.slot("momentum"), a.learning_rate(), a.gradient().values,
                                           a.Number(momentum_), use_nesterov_);
  }

 private:
  const NamedNumber momentum_;
  const bool use_nesterov_;
};

class Adagrad final : public UpdateRule {
 public:
  explicit Adagrad(double initial) : initial_(initial) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"accumulator", initial_}}}; }
  SparseForm sparse_form() const override { return SparseForm::kUniqueRows; }
  Node* Update(const UpdateArgs& a) const override {
    const Gradient& g = a.gradient();
    const Output slot = a.slot("accumulator"), rate = a.learning_rate();
    if (!g.is_sparse()) return ops::ResourceApplyAdagrad(a.var(), slot, rate, g.values);
    return ops::ResourceSparseApplyAdagrad(a.var(), slot, rate, g.values, g.indices);
  }

 private:
  const double initial_;
};

class KerasAdagrad final : public UpdateRule {
 public:
  KerasAdagrad(double initial, const NamedNumber& epsilon) : initial_(initial), epsilon_(epsilon) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"accumulator", initial_}}}; }
  SparseForm sparse_form() const override { return SparseForm::kUniqueRows; }
  Node* Update(const UpdateArgs& a) const override {
    const Gradient& g = a.gradient();
    const Output slot = a.slot("accumulator"), rate = a.learning_rate(), epsilon = a.Number(epsilon_);
    if (!g.is_sparse()) return ops::ResourceApplyKerasAdagrad(a.var(), slot, rate, epsilon, g.values);
    return ops::ResourceSparseApplyKerasAdagrad(a.var(), slot, rate, epsilon, g.values, g.indices);
  }

 private:
  const double initial_;
  const NamedNumber epsilon_;
};

// The moments of every row decay, even if the row has no gradient, unless the rule is lazy.
class Adam final : public UpdateRule {
 public:
  Adam(const NamedNumber& beta1, const NamedNumber& beta2, const NamedNumber& epsilon, bool amsgrad, bool lazy)
      : beta1_(beta1), beta2_(beta2), epsilon_(epsilon), amsgrad_(amsgrad), lazy_(lazy) {}
  std::vector<std::vector<Slot>> slots() const override {
    if (amsgrad_) return {{{"m"}, {"v"}}, {{"vhat"}}};
    return {{{"m"}, {"v"}}};
  }
  std::vector<NamedNumber> powers() const override { return {beta1_, beta2_}; }
  SparseForm sparse_form() const override { return lazy_ ? SparseForm::kUniqueRows : SparseForm::kDense; }
  Node* Update(const UpdateArgs& a) const override {
    const Output m = a.slot("m"), v = a.slot("v"), g = a.gradient().values;
    const ops::AdamScalars scalars = {a.Power(beta1_),  a.Power(beta2_),  a.learning_rate(),
                                      a.Number(beta1_), a.Number(beta2_), a.Number(epsilon_)};
    if (amsgrad_) return ops::ResourceApplyAdamWithAmsgrad(a.var(), m, v, a.slot("vhat"), scalars, g);
    if (a.gradient().is_sparse()) {
      return ops::ResourceSparseApplyAdam(a.var(), m, v, scalars, g, a.gradient().indices);
    }
    return ops::ResourceApplyAdam(a.var(), m, v, scalars, g);
  }

 private:
  const NamedNumber beta1_, beta2_, epsilon_;
  const bool amsgrad_;
  const bool lazy_;
};

class RMSProp final : public UpdateRule {
 public:
  explicit RMSProp(const RMSPropForm& form) : form_(form) {}
  std::vector<std::vector<Slot>> slots() const override { return form_.slots; }
  SparseForm sparse_form() const override { return form_.sparse_form; }
  Node* Update(const UpdateArgs& a) const override {
    const Gradient& g = a.gradient();
    const ops::RMSPropScalars scalars = {a.learning_rate(), a.Number(form_.decay), a.Number(form_.momentum),
                                         a.Number(form_.epsilon)};
    const Output rms = a.slot("rms"), momentum = a.slot("momentum");
    if (form_.centered) {
      const Output mg = a.slot("mg");
      if (!g.is_sparse()) return ops::ResourceApplyCenteredRMSProp(a.var(), mg, rms, momentum, scalars, g.values);
      return ops::ResourceSparseApplyCenteredRMSProp(a.var(), mg, rms, momentum, scalars, g.values, g.indices);
    }
    if (!g.is_sparse()) return ops::ResourceApplyRMSProp(a.var(), rms, momentum, scalars, g.values);
    return ops::ResourceSparseApplyRMSProp(a.var(), rms, momentum, scalars, g.values, g.indices);
  }

 private:
  const RMSPropForm form_;
};

class Ftrl final : public UpdateRule {
 public:
  Ftrl(double initial, const FtrlNumbers& numbers, SparseForm sparse_form)
      : initial_(initial), numbers_(numbers), sparse_form_(sparse_form) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"accum", initial_}, {"linear"}}}; }
  SparseForm sparse_form() const override { return sparse_form_; }
  Node* Update(const UpdateArgs& a) const override {
    const Output rate = a.learning_rate();
    Output l2 = a.Number(numbers_.l2);
    const Hyperparameter& half_beta = numbers_.half_beta.value;
    if (!half_beta.is_fixed() || half_beta.value() != 0.0) {
      l2 = ops::Add(l2, ops::Div(a.Number(numbers_.half_beta), rate));
    }
    const ops::FtrlScalars scalars = {rate, a.Number(numbers_.l1), l2, a.Number(numbers_.learning_rate_power)};
    const Output accum = a.slot("accum"), linear = a.slot("linear"), shrinkage = a.Number(numbers_.l2_shrinkage);
    const Gradient& g = a.gradient();
    if (!g.is_sparse()) return ops::ResourceApplyFtrlV2(a.var(), accum, linear, g.values, scalars, shrinkage);
    return ops::ResourceSparseApplyFtrlV2(a.var(), accum, linear, g.values, g.indices, scalars, shrinkage);
  }

 private:
  const double initial_;
  const FtrlNumbers numbers_;
  const SparseForm sparse_form_;
};

class WeightDecay final : public UpdateRule {
 public:
  WeightDecay(UpdateRulePtr rule, const NamedNumber& rate) : rule_(std::move(rule)), rate_(rate) {}
  std::vector<std::vector<Slot>> slots() const override { return rule_->slots(); }
  std::vector<NamedNumber> powers() const override { return rule_->powers(); }
  SparseForm sparse_form() const override { return rule_->sparse_form(); }
  Node* Update(const UpdateArgs& a) const override {
    const ControlDependencies after(a.variable().graph(), {Decay(a)});
    return rule_->Update(a);
  }

 private:
  // Waits for the gradient, which must be computed with the old weights.
  Node* Decay(const UpdateArgs& a) const {
    const Output rate = a.Number(rate_);
    const ControlDependencies after(a.variable().graph(), {a.gradient().values.node});
    return ops::ResourceApplyWeightDecay(a.var(), ops::Mul(rate, a.learning_rate()));
  }

  const UpdateRulePtr rule_;
  const NamedNumber rate_;
};

class MoreSlots final : public UpdateRule {
 public:
  MoreSlots(UpdateRulePtr rule, std::vector<Slot> slots) : rule_(std::move(rule)), slots_(std::move(slots)) {}
  std::vector<std::vector<Slot>> slots() const override {
    std::vector<std::vector<Slot>> all;
    for (const Slot& slot : slots_) all.push_back({slot});
    for (std::vector<Slot>& group : rule_->slots()) all.push_back(std::move(group));
    return all;
  }
  std::vector<NamedNumber> powers() const override { return rule_->powers(); }
  SparseForm sparse_form() const override { return rule_->sparse_form(); }
  Output NumberInFiles(const Output& updates) const override { return rule_->NumberInFiles(updates); }
  Node* Update(const UpdateArgs& a) const override { return rule_->Update(a); }

 private:
  const UpdateRulePtr rule_;
  const std::vector<Slot> slots_;
};

}  // namespace

UpdateRulePtr GradientDescentRule(SparseForm sparse_form) { return std::make_shared<GradientDescent>(sparse_form); }
UpdateRulePtr MomentumRule(const NamedNumber& momentum, bool use_nesterov) {
  return std::make_shared<Momentum>(momentum, use_nesterov);
}
UpdateRulePtr KerasMomentumRule(const NamedNumber& momentum, bool use_nesterov) {
  return std::make_shared<KerasMomentum>(momentum, use_nesterov);
}
UpdateRulePtr AdagradRule(double initial_accumulator_value) {
  return std::make_shared<Adagrad>(initial_accumulator_value);
}
UpdateRulePtr KerasAdagradRule(double initial_accumulator_value, const NamedNumber& epsilon) {
  return std::make_shared<KerasAdagrad>(initial_accumulator_value, epsilon);
}
UpdateRulePtr AdamRule(const NamedNumber& beta1, const NamedNumber& beta2, const NamedNumber& epsilon, bool amsgrad) {
  return std::make_shared<Adam>(beta1, beta2, epsilon, amsgrad, /*lazy=*/false);
}

UpdateRulePtr LazyAdamRule(const NamedNumber& beta1, const NamedNumber& beta2, const NamedNumber& epsilon) {
  return std::make_shared<Adam>(beta1, beta2, epsilon, /*amsgrad=*/false, /*lazy=*/true);
}
UpdateRulePtr RMSPropRule(const RMSPropForm& form) { return std::make_shared<RMSProp>(form); }
UpdateRulePtr FtrlRule(double initial_accumulator_value, const FtrlNumbers& numbers, SparseForm sparse_form) {
  return std::make_shared<Ftrl>(initial_accumulator_value, numbers, sparse_form);
}
UpdateRulePtr WithSlots(UpdateRulePtr rule, std::vector<Slot> slots) {
  return std::make_shared<MoreSlots>(std::move(rule), std::move(slots));
}
UpdateRulePtr WithWeightDecay(UpdateRulePtr rule, const NamedNumber& rate) {
  return std::make_shared<WeightDecay>(std::move(rule), rate);
}

}  // namespace cohort::train
