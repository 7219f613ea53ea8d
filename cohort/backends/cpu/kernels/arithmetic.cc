// Binary arithmetic as elementwise kernels (elementwise.h), with checks of integer operands, joining of strings by Add,
// and AddN.
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>

#include "cohort/backends/cpu/kernels/broadcast.h"
#include "cohort/backends/cpu/kernels/elementwise.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/wrapping.h"
#include "cohort/core/error.h"

namespace cohort {
namespace {

using cpu::BinaryKernel;
using cpu::MakeBinaryLoops;
using cpu::Wide;
using cpu::Wrapping;

// Functions of two elements of the type that they are computed in.
struct AddFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    return Wrapping<W>::Add(x, y);
  }
};
struct SubFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    return Wrapping<W>::Sub(x, y);
  }
};
struct MulFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    return Wrapping<W>::Mul(x, y);
  }
};
struct DivFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    return Wrapping<W>::Div(x, y);
  }
};
struct FloorDivFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    if constexpr (std::is_floating_point_v<W>) {
      return std::floor(x / y);
    } else {
      const W quotient = Wrapping<W>::Div(x, y);
      const bool inexact = Wrapping<W>::Mul(quotient, y) != x;
      return inexact && ((x < 0) != (y < 0)) ? static_cast<W>(quotient - 1) : quotient;
    }
  }
};
struct FloorModFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    if constexpr (std::is_floating_point_v<W>) {
      const W rest = std::fmod(x, y);
      return rest != 0 && ((rest < 0) != (y < 0)) ? rest + y : rest;
    } else {
      return Wrapping<W>::Sub(x, Wrapping<W>::Mul(FloorDivFn::Apply(x, y), y));
    }
  }
};
struct MaximumFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    return x > y || x != x ? x : y;
  }  // returns y if it is NaN, because x > y is then false
};
struct MinimumFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    return x < y || x != x ? x : y;
  }
};
struct PowFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    if constexpr (std::is_floating_point_v<W>) {
      return std::pow(x, y);
    } else {
      W result = 1;
      for (; y > 0; y = static_cast<W>(y >> 1), x = Wrapping<W>::Mul(x, x)) {
        if (y & 1) result = Wrapping<W>::Mul(result, x);
      }
      return result;
    }
  }
};
struct SquaredDifferenceFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W y) {
    const W d = Wrapping<W>::Sub(x, y);
    return Wrapping<W>::Mul(d, d);
  }
};

template <typename T>
void RefuseZeros(const Tensor& a, const Tensor& b) {
  if (a.num_elements() == 0) return;
  const T* divisor = b.data<T>();
  for (int64_t i = 0; i < b.num_elements(); ++i) {
    if (divisor[i] == 0) {
      throw InvalidArgumentError(StrCat("Integer division by zero: element ", i, " of the divisor of shape ", b.shape(),
                                        " is 0; the dividend has shape ", a.shape()));
    }
  }
}

template <typename T>
void RefuseNegatives(const Tensor& a, const Tensor& b) {
  const T* power = b.data<T>();
  for (int64_t i = 0; i < b.num_elements(); ++i) {
    if (power[i] < 0) {
      throw InvalidArgumentError(StrCat("Integers to negative integer powers are not allowed: ", power[i],
                                        " at element ", i, " of shape ", b.shape(), "; the base has shape ",
                                        a.shape()));
    }
  }
}

template <typename Fn>
void RegisterBinary(KernelRegistry& registry, const char* op, int64_t cost = 1) {
  registry.Register(op, "CPU", [cost](const KernelConstruction& c) {
    return cpu::ForAllNumbers(c.node.input(0).dtype(), c.node.op_name(),
                              [&]<typename T>(T) -> std::unique_ptr<OpKernel> {
                                return std::make_unique<BinaryKernel>(MakeBinaryLoops<Fn, T>(), cost);
                              });
  });
}

// For integers, checks the operands first.
template <typename Fn>
void RegisterDivision(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForAllNumbers(c.node.input(0).dtype(), c.node.op_name(),
                              []<typename T>(T) -> std::unique_ptr<OpKernel> {
                                cpu::OperandCheck check = nullptr;
                                if constexpr (std::is_integral_v<T>) check = RefuseZeros<T>;
                                return std::make_unique<BinaryKernel>(MakeBinaryLoops<Fn, T>(), 4, check);
                              });
  });
}

std::unique_ptr<OpKernel> MakePow(const KernelConstruction& c) {
  return cpu::ForNumbers(c.node.input(0).dtype(), c.node.op_name(), []<typename T>(T) -> std::unique_ptr<OpKernel> {
    cpu::OperandCheck check = nullptr;
    if constexpr (std::is_integral_v<T>) check = RefuseNegatives<T>;
    return std::make_unique<BinaryKernel>(MakeBinaryLoops<PowFn, T>(), 32, check);
  });
}

// Joins strings, with simple broadcasting.
void JoinStrings(KernelContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  const Shape shape = BroadcastShapes(a.shape(), b.shape());
  Tensor& out = ctx.AllocateOutput(0, shape);
  if (out.num_elements() == 0) return;
  const auto plan = cpu::PlanBroadcast<2>(shape, {&a.shape(), &b.shape()});
  const size_t step_a = plan.inner_repeats(0) ? 0 : 1, step_b = plan.inner_repeats(1) ? 0 : 1;
  cpu::WalkBroadcast(plan, 0, plan.outer(), [&](int64_t at, const std::array<int64_t, 2>& offsets) {
    for (size_t i = 0; i < static_cast<size_t>(plan.inner()); ++i) {
      out.data<std::string>()[static_cast<size_t>(at) + i] =
          a.data<std::string>()[static_cast<size_t>(offsets[0]) + i * step_a] +
          b.data<std::string>()[static_cast<size_t>(offsets[1]) + i * step_b];
    }
  });
}

class JoinStringsKernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override { JoinStrings(ctx); }
};

std::unique_ptr<OpKernel> MakeAdd(const KernelConstruction& c) {
  if (c.node.input(0).dtype() == DType::kString) return std::make_unique<JoinStringsKernel>();
  return cpu::ForAllNumbers(c.node.input(0).dtype(), c.node.op_name(), []<typename T>(T) -> std::unique_ptr<OpKernel> {
    return std::make_unique<BinaryKernel>(MakeBinaryLoops<AddFn, T>(), 1);
  });
}

// Adds in the order of the inputs, two inputs in each pass over the memory.
template <typename T>
struct AddOneBody {
  static COHORT_INLINE void Run(T* sum, const T* a, const T* b, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      sum[i] = static_cast<T>(Wrapping<Wide<T>>::Add(static_cast<Wide<T>>(a[i]), static_cast<Wide<T>>(b[i])));
    }
  }
};
template <typename T>
struct AddTwoBody {
  static COHORT_INLINE void Run(T* sum, const T* a, const T* b, int64_t n) {
    using Sum = Wrapping<Wide<T>>;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const Wide<T> first = Sum::Add(static_cast<Wide<T>>(sum[i]), static_cast<Wide<T>>(a[i]));
      sum[i] = static_cast<T>(Sum::Add(first, static_cast<Wide<T>>(b[i])));
    }
  }
};

template <typename T>
class AddNKernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const Tensor& first = ctx.input(0);
    const int count = ctx.num_inputs();
    for (int i = 1; i < count; ++i) {
      if (ctx.input(i).shape() != first.shape()) {
        throw InvalidArgumentError(StrCat("Inputs to operation AddN must have the same size and shape. Input 0: ",
                                          first.shape(), " != input ", i, ": ", ctx.input(i).shape()));
      }
    }
    if (count == 1) return ctx.SetOutput(0, first);
    Tensor& out = ctx.ForwardInputOrAllocate(0, 0, first.shape());
    T* sum = out.data<T>();
    cpu::ForBlocks(
        out.num_elements(), ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          const auto part = [&](int i) { return ctx.input(i).data<T>() + begin; };
          add_one_(sum + begin, part(0), part(1), end - begin);
          int i = 2;
          for (; i + 1 < count; i += 2) add_two_(sum + begin, part(i), part(i + 1), end - begin);
          if (i < count) add_one_(sum + begin, sum + begin, part(i), end - begin);
        },
        count);
  }

 private:
  void (*add_one_)(T*, const T*, const T*, int64_t) = cpu::Widest<AddOneBody<T>>();
  void (*add_two_)(T*, const T*, const T*, int64_t) = cpu::Widest<AddTwoBody<T>>();
};

}  // namespace

void RegisterArithmeticKernels(KernelRegistry& registry) {
  RegisterBinary<AddFn>(registry, "AddV2");
  registry.Register("Add", "CPU", MakeAdd);
  RegisterBinary<SubFn>(registry, "Sub");
  RegisterBinary<MulFn>(registry, "Mul");
  RegisterDivision<DivFn>(registry, "RealDiv");
  RegisterDivision<DivFn>(registry, "Div");
  RegisterDivision<FloorDivFn>(registry, "FloorDiv");
  RegisterDivision<FloorModFn>(registry, "FloorMod");
  RegisterBinary<MaximumFn>(registry, "Maximum");
  RegisterBinary<MinimumFn>(registry, "Minimum");
  RegisterBinary<SquaredDifferenceFn>(registry, "SquaredDifference");
  registry.Register("Pow", "CPU", MakePow);
  registry.Register("AddN", "CPU", [](const KernelConstruction& c) {
    return cpu::ForAllNumbers(
        c.node.input(0).dtype(), c.node.op_name(),
        []<typename T>(T) -> std::unique_ptr<OpKernel> { return std::make_unique<AddNKernel<T>>(); });
  });
}

}  // namespace cohort
