// Activations that a kernel applies to what it reads, and gradients of activations that a kernel applies to what it
// writes, in place of kernels of their own. The results have the same bits. Files *.cu include it.
#pragma once

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/kernels/activation.cu.h"
#include "cohort/backends/cuda/kernels/activation_functions.h"
#include "cohort/backends/cuda/kernels/activation_gradients.h"

namespace cohort::cuda {

// Returns the activation of an element that was read.
template <typename T>
COHORT_KERNEL T Activated(Activation activation, T x) {
  return activation == Activation::kNone ? x : T(ApplyActivation(activation, static_cast<Wide<T>>(x)));
}

// A gradient that a launch applies to its results.
struct AppliedGradient {
  ActivationGradient gradient = ActivationGradient::kRelu;
  // The result of the activation, in the shape of the launch's result; or, if `activation` is not kNone, the operand of
  // this activation. Null: no gradient is applied.
  const void* activated = nullptr;
  Activation activation = Activation::kNone;

  // Returns the gradient for the element g of the result; `read` is its element of `activated`, which is not null.
  template <typename T>
  COHORT_KERNEL T Apply(T g, T read) const {
    using W = Wide<T>;
    const auto y = static_cast<W>(Activated(activation, read));
    const auto of_y = static_cast<W>(g);
    switch (gradient) {
      case ActivationGradient::kRelu: return T(ReluGradient::Apply(of_y, y));
      case ActivationGradient::kRelu6: return T(Relu6Gradient::Apply(of_y, y));
      case ActivationGradient::kElu: return T(EluGradient::Apply(of_y, y));
      case ActivationGradient::kSelu: return T(SeluGradient::Apply(of_y, y));
      case ActivationGradient::kSigmoid: return T(SigmoidGradient::Apply(y, of_y));
      case ActivationGradient::kTanh: return T(TanhGradient::Apply(y, of_y));
      default: return T(SoftplusGradient::Apply(of_y, y));
    }
  }
};

}  // namespace cohort::cuda
