// Update rules: how an optimizer changes one element, for dense and sparse updates. kVariables and kScalars of a rule
// are the names of the op's inputs for its variables and scalars. The constructor reads the op's attributes when the
// kernel is made. In each step, Bind takes the values of the scalars and returns a function f(g, values) that changes
// one element and that the compiler can vectorize. `g` is the gradient's element; `values` has the elements of the
// variables, in the order of kVariables. The formulas are in ops/training.h. Internal to backends/cpu/kernels.
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/device/kernel.h"

namespace cohort::cpu {

struct GradientDescentRule {
  static constexpr std::array<std::string_view, 1> kVariables = {"var"};
  static constexpr std::array<std::string_view, 1> kScalars = {"alpha"};
  explicit GradientDescentRule(const KernelConstruction&) {}
  template <typename W>
  auto Bind(const std::array<W, 1>& s) const {
    return [alpha = s[0]](W g, W* v) COHORT_INLINE_LAMBDA { v[0] -= alpha * g; };
  }
};

struct MomentumRule {
  static constexpr std::array<std::string_view, 2> kVariables = {"var", "accum"};
  static constexpr std::array<std::string_view, 2> kScalars = {"lr", "momentum"};
  explicit MomentumRule(const KernelConstruction& c) : nesterov(c.attr<bool>("use_nesterov")) {}
  template <typename W>
  auto Bind(const std::array<W, 2>& s) const {
    // var -= own * g + shared * accum
    return [lr = s[0], momentum = s[1], own = nesterov ? s[0] : W(0), shared = nesterov ? s[0] * s[1] : s[0]](W g, W* v)
               COHORT_INLINE_LAMBDA {
                 v[1] = v[1] * momentum + g;
                 v[0] -= own * g + shared * v[1];
               };
  }
  bool nesterov;
};

struct KerasMomentumRule {
  static constexpr std::array<std::string_view, 2> kVariables = {"var", "accum"};
  static constexpr std::array<std::string_view, 2> kScalars = {"lr", "momentum"};
  explicit KerasMomentumRule(const KernelConstruction& c) : nesterov(c.attr<bool>("use_nesterov")) {}
  template <typename W>
  auto Bind(const std::array<W, 2>& s) const {
    // var += shared * accum - own * g
    return [lr = s[0], momentum = s[1], own = nesterov ? s[0] : W(0), shared = nesterov ? s[1] : W(1)](W g, W* v)
               COHORT_INLINE_LAMBDA {
                 v[1] = v[1] * momentum - lr * g;
                 v[0] += shared * v[1] - own * g;
               };
  }
  bool nesterov;
};

struct AdagradRule {
  static constexpr std::array<std::string_view, 2> kVariables = {"var", "accum"};
  static constexpr std::array<std::string_view, 1> kScalars = {"lr"};
  explicit AdagradRule(const KernelConstruction& c) : update_slots(c.attr<bool>("update_slots")) {}
  template <typename W>
  auto Bind(const std::array<W, 1>& s) const {
    return [lr = s[0], grow = update_slots ? W(1) : W(0)](W g, W* v) COHORT_INLINE_LAMBDA {
      v[1] += grow * (g * g);
      v[0] -= lr * g / std::sqrt(v[1]);
    };
  }
  bool update_slots;
};

struct AdagradV2Rule {
  static constexpr std::array<std::string_view, 2> kVariables = {"var", "accum"};
  static constexpr std::array<std::string_view, 2> kScalars = {"lr", "epsilon"};
  explicit AdagradV2Rule(const KernelConstruction& c) : update_slots(c.attr<bool>("update_slots")) {}
  template <typename W>
  auto Bind(const std::array<W, 2>& s) const {
    return [lr = s[0], epsilon = s[1], grow = update_slots ? W(1) : W(0)](W g, W* v) COHORT_INLINE_LAMBDA {
      v[1] += grow * (g * g);
      v[0] -= lr * g / (std::sqrt(v[1]) + epsilon);
    };
  }
  bool update_slots;
};

struct KerasAdagradRule {
  static constexpr std::array<std::string_view, 2> kVariables = {"var", "accum"};
  static constexpr std::array<std::string_view, 2> kScalars = {"lr", "epsilon"};
  explicit KerasAdagradRule(const KernelConstruction&) {}
  template <typename W>
  auto Bind(const std::array<W, 2>& s) const {
    return [lr = s[0], epsilon = s[1]](W g, W* v) COHORT_INLINE_LAMBDA {
      v[1] += g * g;
      v[0] -= lr * g / std::sqrt(v[1] + epsilon);
    };
  }
};

struct AdamRule {
  static constexpr std::array<std::string_view, 3> kVariables = {"var", "m", "v"};
  static constexpr std::array<std::string_view, 6> kScalars = {"beta1_power", "beta2_power", "lr",
                                                               "beta1",       "beta2",       "epsilon"};
  explicit AdamRule(const KernelConstruction& c) : nesterov(c.attr<bool>("use_nesterov")) {}
  template <typename W>
  auto Bind(const std::array<W, 6>& s) const {
    const W alpha = s[2] * std::sqrt(W(1) - s[1]) / (W(1) - s[0]);
    const W rest1 = W(1) - s[3];
    const W rest2 = W(1) - s[4];
    // The direction is own * g + shared * m.
    const W own = nesterov ? rest1 : W(0);
    const W shared = nesterov ? s[3] : W(1);
    return [=, epsilon = s[5]](W g, W* v) COHORT_INLINE_LAMBDA {
      v[1] += (g - v[1]) * rest1;
      v[2] += (g * g - v[2]) * rest2;
      v[0] -= alpha * (own * g + shared * v[1]) / (std::sqrt(v[2]) + epsilon);
    };
  }
  bool nesterov;
};

struct AmsgradRule {
  static constexpr std::array<std::string_view, 4> kVariables = {"var", "m", "v", "vhat"};
  static constexpr std::array<std::string_view, 6> kScalars = AdamRule::kScalars;
  explicit AmsgradRule(const KernelConstruction&) {}
  template <typename W>
  auto Bind(const std::array<W, 6>& s) const {
    const W alpha = s[2] * std::sqrt(W(1) - s[1]) / (W(1) - s[0]);
    return [alpha, rest1 = W(1) - s[3], rest2 = W(1) - s[4], epsilon = s[5]](W g, W* v) COHORT_INLINE_LAMBDA {
      v[1] += (g - v[1]) * rest1;
      v[2] += (g * g - v[2]) * rest2;
      v[3] = v[3] < v[2] ? v[2] : v[3];
      v[0] -= alpha * v[1] / (std::sqrt(v[3]) + epsilon);
    };
  }
};

struct RMSPropRule {
  static constexpr std::array<std::string_view, 3> kVariables = {"var", "ms", "mom"};
  static constexpr std::array<std::string_view, 4> kScalars = {"lr", "rho", "momentum", "epsilon"};
  explicit RMSPropRule(const KernelConstruction&) {}
  template <typename W>
  auto Bind(const std::array<W, 4>& s) const {
    return [lr = s[0], rest = W(1) - s[1], momentum = s[2], epsilon = s[3]](W g, W* v) COHORT_INLINE_LAMBDA {
      v[1] += (g * g - v[1]) * rest;
      v[2] = v[2] * momentum + lr * g / std::sqrt(v[1] + epsilon);
      v[0] -= v[2];
    };
  }
};

struct CenteredRMSPropRule {
  static constexpr std::array<std::string_view, 4> kVariables = {"var", "mg", "ms", "mom"};
  static constexpr std::array<std::string_view, 4> kScalars = {"lr", "rho", "momentum", "epsilon"};
  explicit CenteredRMSPropRule(const KernelConstruction&) {}
  template <typename W>
  auto Bind(const std::array<W, 4>& s) const {
    return [lr = s[0], rest = W(1) - s[1], momentum = s[2], epsilon = s[3]](W g, W* v) COHORT_INLINE_LAMBDA {
      v[2] += (g * g - v[2]) * rest;
      v[1] += (g - v[1]) * rest;
      v[3] = v[3] * momentum + lr * g / std::sqrt(v[2] - v[1] * v[1] + epsilon);
      v[0] -= v[3];
    };
  }
};

// Ftrl and FtrlV2. FtrlV2 adds 2 * l2_shrinkage * variable to the gradient that enters `linear`.
template <bool kShrinks>
struct FtrlRuleOf {
  static constexpr std::array<std::string_view, 3> kVariables = {"var", "accum", "linear"};
  // l2_shrinkage is last here. The op may have another order, because inputs are found by name.
  static constexpr auto kScalars = [] {
    if constexpr (kShrinks) {
      return std::array<std::string_view, 5>{"lr", "l1", "l2", "lr_power", "l2_shrinkage"};
    } else {
      return std::array<std::string_view, 4>{"lr", "l1", "l2", "lr_power"};
    }
  }();
  explicit FtrlRuleOf(const KernelConstruction& c) : linear_times_lr(c.attr<bool>("multiply_linear_by_lr")) {}
  // If linear_times_lr is true, the variable `linear` holds lr times the value of the formula. Then l1, l2 and the
  // shrinkage are multiplied by lr, too.
  template <typename W>
  auto Bind(const std::array<W, kScalars.size()>& s) const {
    const W lr = s[0];
    const W of_grad = linear_times_lr ? lr : W(1);
    const W of_power = linear_times_lr ? W(1) : W(1) / lr;
    const W l1 = s[1] * of_grad;
    const W l2 = W(2) * s[2] * of_grad;
    W shrinkage = W(0);
    if constexpr (kShrinks) shrinkage = W(2) * s[4] * of_grad;
    return [=, power = -s[3], root = s[3] == W(-0.5)](W g, W* v) COHORT_INLINE_LAMBDA {
      const W accum = v[1] + g * g;
      const W now = root ? std::sqrt(accum) : std::pow(accum, power);
      const W before = root ? std::sqrt(v[1]) : std::pow(v[1], power);
      v[2] += of_grad * g + (shrinkage - (now - before) * of_power) * v[0];
      const W clipped = v[2] < -l1 ? -l1 : (v[2] > l1 ? l1 : v[2]);
      v[0] = (clipped - v[2]) / (now * of_power + l2);
      v[1] = accum;
    };
  }
  bool linear_times_lr;
};
using FtrlRule = FtrlRuleOf<false>;
using FtrlV2Rule = FtrlRuleOf<true>;

}  // namespace cohort::cpu
