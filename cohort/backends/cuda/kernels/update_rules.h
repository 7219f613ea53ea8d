// Update rules for kernels: how an optimizer changes one element. A rule is made from the values of the op's scalars,
// in the order of the rule's kScalars of the CPU's backend, and from the op's attribute `flag`; it then changes
// elements: `g` is the gradient's element, and v[k] is the element of variable k. The formulas are in ops/training.h.
// Files *.cu include it.
#pragma once

#include <cmath>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

template <typename W>
struct GradientDescentRule {
  static constexpr int kVariables = 1, kScalars = 1;
  W alpha;
  COHORT_KERNEL GradientDescentRule(const W* s, bool) : alpha(s[0]) {}
  COHORT_KERNEL void operator()(W g, W* v) const { v[0] -= alpha * g; }
};

// The gradient does not count.
template <typename W>
struct WeightDecayRule {
  static constexpr int kVariables = 1, kScalars = 1;
  W alpha;
  COHORT_KERNEL WeightDecayRule(const W* s, bool) : alpha(s[0]) {}
  COHORT_KERNEL void operator()(W, W* v) const { v[0] -= alpha * v[0]; }
};

template <typename W>
struct MomentumRule {  // flag: Nesterov
  static constexpr int kVariables = 2, kScalars = 2;
  W momentum, own, shared;  // var -= own * g + shared * accum
  COHORT_KERNEL MomentumRule(const W* s, bool nesterov)
      : momentum(s[1]), own(nesterov ? s[0] : W(0)), shared(nesterov ? s[0] * s[1] : s[0]) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    v[1] = v[1] * momentum + g;
    v[0] -= own * g + shared * v[1];
  }
};

template <typename W>
struct KerasMomentumRule {  // flag: Nesterov
  static constexpr int kVariables = 2, kScalars = 2;
  W lr, momentum, own, shared;  // var += shared * accum - own * g
  COHORT_KERNEL KerasMomentumRule(const W* s, bool nesterov)
      : lr(s[0]), momentum(s[1]), own(nesterov ? s[0] : W(0)), shared(nesterov ? s[1] : W(1)) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    v[1] = v[1] * momentum - lr * g;
    v[0] += shared * v[1] - own * g;
  }
};

template <typename W>
struct AdagradRule {  // flag: update the slots
  static constexpr int kVariables = 2, kScalars = 1;
  W lr, grow;
  COHORT_KERNEL AdagradRule(const W* s, bool update_slots) : lr(s[0]), grow(update_slots ? W(1) : W(0)) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    v[1] += grow * (g * g);
    v[0] -= lr * g / std::sqrt(v[1]);
  }
};

template <typename W>
struct AdagradV2Rule {  // flag: update the slots
  static constexpr int kVariables = 2, kScalars = 2;
  W lr, epsilon, grow;
  COHORT_KERNEL AdagradV2Rule(const W* s, bool update_slots)
      : lr(s[0]), epsilon(s[1]), grow(update_slots ? W(1) : W(0)) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    v[1] += grow * (g * g);
    v[0] -= lr * g / (std::sqrt(v[1]) + epsilon);
  }
};

template <typename W>
struct KerasAdagradRule {
  static constexpr int kVariables = 2, kScalars = 2;
  W lr, epsilon;
  COHORT_KERNEL KerasAdagradRule(const W* s, bool) : lr(s[0]), epsilon(s[1]) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    v[1] += g * g;
    v[0] -= lr * g / std::sqrt(v[1] + epsilon);
  }
};

template <typename W>
struct AdamRule {  // flag: Nesterov
  static constexpr int kVariables = 3, kScalars = 6;
  W alpha, rest1, rest2, own, shared, epsilon;  // the direction is own * g + shared * m
  COHORT_KERNEL AdamRule(const W* s, bool nesterov)
      : alpha(s[2] * std::sqrt(W(1) - s[1]) / (W(1) - s[0])),
        rest1(W(1) - s[3]),
        rest2(W(1) - s[4]),
        own(nesterov ? W(1) - s[3] : W(0)),
        shared(nesterov ? s[3] : W(1)),
        epsilon(s[5]) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    v[1] += (g - v[1]) * rest1;
    v[2] += (g * g - v[2]) * rest2;
    v[0] -= alpha * (own * g + shared * v[1]) / (std::sqrt(v[2]) + epsilon);
  }
};

template <typename W>
struct AmsgradRule {
  static constexpr int kVariables = 4, kScalars = 6;
  W alpha, rest1, rest2, epsilon;
  COHORT_KERNEL AmsgradRule(const W* s, bool)
      : alpha(s[2] * std::sqrt(W(1) - s[1]) / (W(1) - s[0])), rest1(W(1) - s[3]), rest2(W(1) - s[4]), epsilon(s[5]) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    v[1] += (g - v[1]) * rest1;
    v[2] += (g * g - v[2]) * rest2;
    v[3] = v[3] < v[2] ? v[2] : v[3];
    v[0] -= alpha * v[1] / (std::sqrt(v[3]) + epsilon);
  }
};

template <typename W>
struct RMSPropRule {
  static constexpr int kVariables = 3, kScalars = 4;
  W lr, rest, momentum, epsilon;
  COHORT_KERNEL RMSPropRule(const W* s, bool) : lr(s[0]), rest(W(1) - s[1]), momentum(s[2]), epsilon(s[3]) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    v[1] += (g * g - v[1]) * rest;
    v[2] = v[2] * momentum + lr * g / std::sqrt(v[1] + epsilon);
    v[0] -= v[2];
  }
};

template <typename W>
struct CenteredRMSPropRule {
  static constexpr int kVariables = 4, kScalars = 4;
  W lr, rest, momentum, epsilon;
  COHORT_KERNEL CenteredRMSPropRule(const W* s, bool) : lr(s[0]), rest(W(1) - s[1]), momentum(s[2]), epsilon(s[3]) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    v[2] += (g * g - v[2]) * rest;
    v[1] += (g - v[1]) * rest;
    v[3] = v[3] * momentum + lr * g / std::sqrt(v[2] - v[1] * v[1] + epsilon);
    v[0] -= v[3];
  }
};

// Ftrl and FtrlV2, which adds 2 * l2_shrinkage * variable to the gradient that enters `linear`. l2_shrinkage is the
// last scalar.
template <typename W, bool kShrinks>
struct FtrlRuleOf {  // flag: `linear` holds lr times the value of the formula
  static constexpr int kVariables = 3, kScalars = kShrinks ? 5 : 4;
  W of_grad, of_power, l1, l2, shrinkage, power;
  bool root;
  COHORT_KERNEL FtrlRuleOf(const W* s, bool linear_times_lr)
      : of_grad(linear_times_lr ? s[0] : W(1)),
        of_power(linear_times_lr ? W(1) : W(1) / s[0]),
        l1(s[1] * of_grad),
        l2(W(2) * s[2] * of_grad),
        shrinkage(kShrinks ? W(2) * s[kScalars - 1] * of_grad : W(0)),
        power(-s[3]),
        root(s[3] == W(-0.5)) {}
  COHORT_KERNEL void operator()(W g, W* v) const {
    const W accum = v[1] + g * g;
    const W now = root ? std::sqrt(accum) : std::pow(accum, power);
    const W before = root ? std::sqrt(v[1]) : std::pow(v[1], power);
    v[2] += of_grad * g + (shrinkage - (now - before) * of_power) * v[0];
    const W clipped = v[2] < -l1 ? -l1 : (v[2] > l1 ? l1 : v[2]);
    v[0] = (clipped - v[2]) / (now * of_power + l2);
    v[1] = accum;
  }
};
template <typename W>
using FtrlRule = FtrlRuleOf<W, false>;
template <typename W>
using FtrlV2Rule = FtrlRuleOf<W, true>;

}  // namespace cohort::cuda
