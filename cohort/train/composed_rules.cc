// The rules of update_rules.h that have no update op of their own: they are made of ordinary ops that end in
// assignments. The assignments of a variable and of its slots do not wait for one another, so they are one update set.
// If several workers update a variable at the same time, one of them may use a slot's value that another one is about
// to change, as with TensorFlow's ops without locks.
#include <cmath>
#include <utility>

#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/train/update_rules.h"

namespace cohort::train {
namespace {

// Returns a node that has run when all updates of the variable and its slots are made.
Node* AllOf(const UpdateArgs& a, const std::vector<Node*>& updates) {
  return ops::Group(a.variable().graph(), updates, "update");
}

// A moving mean of a slot: its value after the update, and the update.
struct MovedMean {
  Output value;
  Node* update;
};

// slot += (x - slot) (1 - decay)
MovedMean MoveMean(Output slot, const Output& x, const Output& decay) {
  const Output old = ops::ReadVariableOp(slot);
  const Output change = (x - old) * (1.0 - decay);
  return {old + change, ops::AssignAddVariableOp(slot, change)};
}

class Adadelta final : public UpdateRule {
 public:
  Adadelta(NamedNumber rho, NamedNumber epsilon) : rho_(std::move(rho)), epsilon_(std::move(epsilon)) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"accum"}, {"accum_update"}}}; }
  Node* Update(const UpdateArgs& a) const override {
    const Output& g = a.gradient().values;
    const Output rho = a.Number(rho_), epsilon = a.Number(epsilon_), changes = a.slot("accum_update");
    const MovedMean squares = MoveMean(a.slot("accum"), ops::Square(g), rho);
    const Output step = ops::Sqrt(ops::ReadVariableOp(changes) + epsilon) * g / ops::Sqrt(squares.value + epsilon);
    return AllOf(a, {squares.update, MoveMean(changes, ops::Square(step), rho).update,
                     ops::AssignSubVariableOp(a.var(), a.learning_rate() * step)});
  }

 private:
  const NamedNumber rho_, epsilon_;
};

class Adamax final : public UpdateRule {
 public:
  Adamax(NamedNumber beta1, NamedNumber beta2, NamedNumber epsilon)
      : beta1_(std::move(beta1)), beta2_(std::move(beta2)), epsilon_(std::move(epsilon)) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"m"}, {"u"}}}; }
  std::vector<NamedNumber> powers() const override { return {beta1_}; }
  Node* Update(const UpdateArgs& a) const override {
    const Output &g = a.gradient().values, norm = a.slot("u");
    const MovedMean m = MoveMean(a.slot("m"), g, a.Number(beta1_));
    const Output u = ops::Maximum(ops::ReadVariableOp(norm) * a.Number(beta2_), ops::Abs(g));
    const Output step = a.learning_rate() * m.value / ((1.0 - a.Power(beta1_)) * (u + a.Number(epsilon_)));
    return AllOf(a, {m.update, ops::AssignVariableOp(norm, u), ops::AssignSubVariableOp(a.var(), step)});
  }

 private:
  const NamedNumber beta1_, beta2_, epsilon_;
};

class Lion final : public UpdateRule {
 public:
  Lion(NamedNumber beta1, NamedNumber beta2) : beta1_(std::move(beta1)), beta2_(std::move(beta2)) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"m"}}}; }
  Node* Update(const UpdateArgs& a) const override {
    const Output &g = a.gradient().values, slot = a.slot("m"), beta1 = a.Number(beta1_);
    const Output direction = ops::Sign(ops::ReadVariableOp(slot) * beta1 + g * (1.0 - beta1));
    return AllOf(a, {MoveMean(slot, g, a.Number(beta2_)).update,
                     ops::AssignSubVariableOp(a.var(), a.learning_rate() * direction)});
  }

 private:
  const NamedNumber beta1_, beta2_;
};

// In update t the momentum is u_t = beta1 (1 - 0.96^t / 2). The rule needs the product of u_1 to u_t, which is beta1^t
// times the product of the other factors. That product hardly changes behind the first few hundred, so it is looked up
// in a table. Keras has the product of all u in a variable, also in files.
class Nadam final : public UpdateRule {
 public:
  Nadam(NamedNumber beta1, NamedNumber beta2, NamedNumber epsilon)
      : beta1_(std::move(beta1)), beta2_(std::move(beta2)), epsilon_(std::move(epsilon)) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"m"}, {"v"}}}; }
  std::vector<NamedNumber> powers() const override { return {beta1_, beta2_, decay_}; }
  Output NumberInFiles(const Output& updates) const override {
    const auto power = [&](double base) { return ops::Pow(ops::ScalarLike(updates, base), updates); };
    return power(beta1_.value.value()) * ProductOfFactors(power(kDecay));
  }
  Node* Update(const UpdateArgs& a) const override {
    const Output &g = a.gradient().values, beta1 = a.Number(beta1_), decay = a.Power(decay_);
    const MovedMean m = MoveMean(a.slot("m"), g, beta1);
    const MovedMean v = MoveMean(a.slot("v"), ops::Square(g), a.Number(beta2_));
    const Output now = beta1 * (1.0 - decay * 0.5), next = beta1 * (1.0 - decay * (0.5 * kDecay));
    const Output product = a.Power(beta1_) * ProductOfFactors(decay);
    const Output mean = next * m.value / (1.0 - product * next) + (1.0 - now) * g / (1.0 - product);
    const Output root = ops::Sqrt(v.value / (1.0 - a.Power(beta2_)));
    const Output step = a.learning_rate() * mean / (root + a.Number(epsilon_));
    return AllOf(a, {m.update, v.update, ops::AssignSubVariableOp(a.var(), step)});
  }

 private:
  static constexpr double kDecay = 0.96;
  static constexpr int kEntries = 512;  // 0.96^511 is less than 1e-9

  // Returns the product of 1 - 0.96^i / 2 for i from 1 to t. `decay` is 0.96^t.
  static Output ProductOfFactors(const Output& decay) {
    std::vector<float> products;
    double product = 1.0, power = 1.0;
    for (int t = 0; t < kEntries; ++t) {
      products.push_back(static_cast<float>(product));
      power *= kDecay;
      product *= 1.0 - 0.5 * power;
    }
    const Output least =
        ops::Maximum(ops::Cast(decay, DType::kFloat32), static_cast<float>(std::pow(kDecay, kEntries)));
    const Output t = ops::Cast(ops::Round(ops::Log(least) / static_cast<float>(std::log(kDecay))), DType::kInt32);
    const Output table = ops::Const(decay.graph(), products);
    return ops::Cast(ops::Gather(table, ops::Minimum(t, kEntries - 1)), decay.dtype());
  }

  const NamedNumber beta1_, beta2_, epsilon_;
  const NamedNumber decay_ = {"momentum_decay", kDecay};
};

}  // namespace

UpdateRulePtr AdadeltaRule(const NamedNumber& rho, const NamedNumber& epsilon) {
  return std::make_shared<Adadelta>(rho, epsilon);
}
UpdateRulePtr AdamaxRule(const NamedNumber& beta1, const NamedNumber& beta2, const NamedNumber& epsilon) {
  return std::make_shared<Adamax>(beta1, beta2, epsilon);
}
UpdateRulePtr LionRule(const NamedNumber& beta1, const NamedNumber& beta2) {
  return std::make_shared<Lion>(beta1, beta2);
}
UpdateRulePtr NadamRule(const NamedNumber& beta1, const NamedNumber& beta2, const NamedNumber& epsilon) {
  return std::make_shared<Nadam>(beta1, beta2, epsilon);
}

}  // namespace cohort::train
