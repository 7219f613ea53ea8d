// Kernels that compute each element from the elements at the same position of one tensor, or of two tensors that
// broadcast. Internal to backends/cpu/kernels.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/backends/cpu/kernels/elementwise_loops.h"
#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/device/kernel.h"

namespace cohort::cpu {

// Converts a result of type W (Wide<T>: float for bfloat16, else T) to the element type R.
template <typename R, typename W>
COHORT_INLINE R Narrow(W value) {
  return static_cast<R>(value);
}

// A loop y[i] = Fn::Apply(x[i]).
using UnaryLoop = void (*)(const void* x, void* y, int64_t n);

// The loop of a UnaryKernel. Widest<UnaryBody<...>>() compiles it for each instruction set and returns the version for
// this processor.
template <typename Fn, typename T, typename R>
struct UnaryBody {
  static COHORT_INLINE void Run(const void* x, void* y, int64_t n) {
    const T* in = static_cast<const T*>(x);
    R* out = static_cast<R*>(y);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = Narrow<R>(Fn::Apply(static_cast<Wide<T>>(in[i])));
  }
};

// Computes y = fn(x), in x's memory if possible. `cost` is about how many simple operations an element takes. The plan
// owns the kernel. Thread-safe.
class UnaryKernel final : public ElementwiseKernel {
 public:
  UnaryKernel(UnaryLoop loop, int64_t cost) : loop_(loop), cost_(cost) { elementwise_.unary = loop; }
  void Compute(KernelContext& ctx) override;
  const ElementwiseLoops* loops() const override { return &elementwise_; }

 private:
  UnaryLoop loop_;
  int64_t cost_;
  ElementwiseLoops elementwise_;
};

// The loops of a binary op: for two operands of n elements, for a right operand that is a scalar, and for a left
// operand that is a scalar.
struct BinaryLoops {
  using Loop = void (*)(const void* a, const void* b, void* out, int64_t n);
  Loop both;
  Loop right_scalar;
  Loop left_scalar;
  size_t element_size;  // bytes of an element of the operands
  size_t result_size;   // bytes of an element of the result
};

// The three loops of a BinaryKernel: BothBody, RightScalarBody, LeftScalarBody. MakeBinaryLoops gives them to Widest,
// which picks the version for this processor.
template <typename Fn, typename T, typename R>
struct BothBody {
  static COHORT_INLINE void Run(const void* a, const void* b, void* out, int64_t n) {
    const T* x = static_cast<const T*>(a);
    const T* y = static_cast<const T*>(b);
    R* z = static_cast<R*>(out);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      z[i] = Narrow<R>(Fn::Apply(static_cast<Wide<T>>(x[i]), static_cast<Wide<T>>(y[i])));
    }
  }
};
template <typename Fn, typename T, typename R>
struct RightScalarBody {
  static COHORT_INLINE void Run(const void* a, const void* b, void* out, int64_t n) {
    const T* x = static_cast<const T*>(a);
    const Wide<T> y = static_cast<Wide<T>>(*static_cast<const T*>(b));
    R* z = static_cast<R*>(out);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) z[i] = Narrow<R>(Fn::Apply(static_cast<Wide<T>>(x[i]), y));
  }
};
template <typename Fn, typename T, typename R>
struct LeftScalarBody {
  static COHORT_INLINE void Run(const void* a, const void* b, void* out, int64_t n) {
    const Wide<T> x = static_cast<Wide<T>>(*static_cast<const T*>(a));
    const T* y = static_cast<const T*>(b);
    R* z = static_cast<R*>(out);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) z[i] = Narrow<R>(Fn::Apply(x, static_cast<Wide<T>>(y[i])));
  }
};

template <typename Fn, typename T, typename R = T>
BinaryLoops MakeBinaryLoops() {
  return {Widest<BothBody<Fn, T, R>>(), Widest<RightScalarBody<Fn, T, R>>(), Widest<LeftScalarBody<Fn, T, R>>(),
          sizeof(T), sizeof(R)};
}

// A function that is called before anything is computed. It throws InvalidArgumentError if the op does not allow the
// values of the operands, such as a divisor 0 of integers.
using OperandCheck = void (*)(const Tensor& a, const Tensor& b);

// Computes z = fn(x, y) with broadcasting, in the memory of an operand if possible. `cost` is about how many simple
// operations an element takes. The plan owns the kernel. Thread-safe.
class BinaryKernel final : public ElementwiseKernel {
 public:
  BinaryKernel(BinaryLoops loops, int64_t cost, OperandCheck check = nullptr)
      : loops_(loops),
        cost_(cost),
        check_(check),
        elementwise_{nullptr, loops.both, loops.right_scalar, loops.left_scalar} {}
  void Compute(KernelContext& ctx) override;
  const ElementwiseLoops* loops() const override { return check_ == nullptr ? &elementwise_ : nullptr; }

 private:
  void Broadcast(KernelContext& ctx, const Tensor& a, const Tensor& b) const;
  void RunLoop(KernelContext& ctx, BinaryLoops::Loop loop, const Tensor& a, const Tensor& b, Tensor& out, size_t a_step,
               size_t b_step) const;

  BinaryLoops loops_;
  int64_t cost_;
  OperandCheck check_;
  ElementwiseLoops elementwise_;
};

}  // namespace cohort::cpu
