// Gradients of activation functions, for kernels: functions of two elements, in the order of the op's inputs. `g` is
// the gradient's element; y is that of the function's result, and x that of its operand. Files *.cu include it.
#pragma once

#include <cmath>
#include <type_traits>

#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/kernels/activation_functions.h"

namespace cohort::cuda {

struct ReluGradient {
  template <typename W>
  COHORT_KERNEL static W Apply(W g, W x) {
    return x > W(0) ? g : W(0);
  }
};
struct Relu6Gradient {
  template <typename W>
  COHORT_KERNEL static W Apply(W g, W x) {
    return x > W(0) && x < W(6) ? g : W(0);
  }
};
struct EluGradient {
  template <typename W>
  COHORT_KERNEL static W Apply(W g, W y) {
    return y < W(0) ? (y + W(1)) * g : g;
  }
};
struct SeluGradient {
  template <typename W>
  COHORT_KERNEL static W Apply(W g, W y) {
    return (y < W(0) ? y + W(kSeluScaleAlpha) : W(kSeluScale)) * g;
  }
};
// In float32 the exponential stays finite, as on the CPU, so that an infinite gradient stays infinite.
struct SoftplusGradient {
  template <typename W>
  COHORT_KERNEL static W Apply(W g, W x) {
    const bool large = std::is_same_v<W, float> && x < W(-88);
    return g / (W(1) + std::exp(large ? W(88) : -x));
  }
};
struct SigmoidGradient {
  template <typename W>
  COHORT_KERNEL static W Apply(W y, W g) {
    return g * y * (W(1) - y);
  }
};
struct TanhGradient {
  template <typename W>
  COHORT_KERNEL static W Apply(W y, W g) {
    return g * (W(1) - RoundedProduct(y, y));
  }
};
struct LeakyReluFunction {
  float alpha;
  template <typename W>
  COHORT_KERNEL W Apply(W x) const {
    return x > W(0) ? x : x * static_cast<W>(alpha);
  }
};
struct LeakyReluGradient {
  float alpha;
  template <typename W>
  COHORT_KERNEL W Apply(W g, W x) const {
    return x > W(0) ? g : g * static_cast<W>(alpha);
  }
};

}  // namespace cohort::cuda
