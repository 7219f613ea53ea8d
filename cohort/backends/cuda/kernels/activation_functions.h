// Activation functions for kernels that apply one to their result. A file *.cu includes it.
#pragma once

#include <cmath>
#include <cstdint>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

enum class Activation : uint8_t { kNone, kRelu, kRelu6, kElu, kSelu, kSigmoid, kTanh, kSoftplus };

inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

// Functions of one element in the type W in which it is computed. NaN stays NaN.
struct NoActivation {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    return x;
  }
};
struct ReluFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    return x < W(0) ? W(0) : x;
  }
};
struct Relu6Function {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    return x < W(0) ? W(0) : (x > W(6) ? W(6) : x);
  }
};
struct EluFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    return x < W(0) ? std::expm1(x) : x;
  }
};
struct SeluFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    return x < W(0) ? W(kSeluScaleAlpha) * std::expm1(x) : W(kSeluScale) * x;
  }
};
struct SigmoidFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    return W(1) / (W(1) + std::exp(-x));
  }
};
struct TanhFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    return std::tanh(x);
  }
};
struct SoftplusFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    return (x < W(0) ? W(0) : x) + std::log1p(std::exp(x < W(0) ? x : -x));
  }
};

// Applies the activation to an element. A kernel uses it if the branch costs little beside its other work.
template <typename W>
COHORT_KERNEL W ApplyActivation(Activation activation, W x) {
  switch (activation) {
    case Activation::kRelu: return ReluFunction::Apply(x);
    case Activation::kRelu6: return Relu6Function::Apply(x);
    case Activation::kElu: return EluFunction::Apply(x);
    case Activation::kSelu: return SeluFunction::Apply(x);
    case Activation::kSigmoid: return SigmoidFunction::Apply(x);
    case Activation::kTanh: return TanhFunction::Apply(x);
    case Activation::kSoftplus: return SoftplusFunction::Apply(x);
    default: return x;
  }
}

// Calls fn with an object of the function's type.
template <typename Fn>
void ForActivation(Activation activation, const Fn& fn) {
  switch (activation) {
    case Activation::kNone: return fn(NoActivation());
    case Activation::kRelu: return fn(ReluFunction());
    case Activation::kRelu6: return fn(Relu6Function());
    case Activation::kElu: return fn(EluFunction());
    case Activation::kSelu: return fn(SeluFunction());
    case Activation::kSigmoid: return fn(SigmoidFunction());
    case Activation::kTanh: return fn(TanhFunction());
    case Activation::kSoftplus: return fn(SoftplusFunction());
  }
}

}  // namespace cohort::cuda
