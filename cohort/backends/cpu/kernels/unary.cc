// Unary elementwise ops. A function of one element is a struct with Apply, which elementwise.h makes into a loop for
// each dtype.
#include <cmath>
#include <limits>
#include <type_traits>

#include "cohort/backends/cpu/kernels/elementwise.h"
#include "cohort/backends/cpu/kernels/exponential.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/wrapping.h"
#include "cohort/core/error.h"

namespace cohort {
namespace {

using cpu::UnaryBody;
using cpu::UnaryKernel;
using cpu::Widest;
using cpu::Wrapping;

// Functions of one element of the type that it is computed in. kCost is in simple operations, kWide says
// whether AVX-512 pays.
struct Cheap {
  static constexpr int64_t kCost = 1;
  static constexpr bool kWide = false;
};
struct Costly {
  static constexpr int64_t kCost = 16;
  static constexpr bool kWide = true;
};

struct NegFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    if constexpr (std::is_integral_v<W>)
      return Wrapping<W>::Sub(W(0), x);
    else
      return -x;
  }
};
struct AbsFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    if constexpr (std::is_integral_v<W>)
      return x < W(0) ? Wrapping<W>::Sub(W(0), x) : x;
    else
      return std::abs(x);
  }
};
struct SignFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    const W sign = x > W(0) ? W(1) : (x < W(0) ? static_cast<W>(-1) : W(0));
    return x == x ? sign : x;
  }
};
struct SquareFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return Wrapping<W>::Mul(x, x);
  }
};
struct ReciprocalFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return W(1) / x;
  }
};
struct SqrtFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::sqrt(x);
  }
};
struct RsqrtFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return W(1) / std::sqrt(x);
  }
};
struct FloorFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::floor(x);
  }
};
struct CeilFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::ceil(x);
  }
};
struct RoundFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    if constexpr (std::is_integral_v<W>)
      return x;
    else
      return std::rint(x);  // the rounding mode is to nearest, halves to even
  }
};
struct ExpFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return cpu::FullExp(x);
  }
};
struct Expm1Fn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::expm1(x);
  }
};
struct LogFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::log(x);
  }
};
struct Log1pFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::log1p(x);
  }
};
struct SinFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::sin(x);
  }
};
struct CosFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::cos(x);
  }
};
struct TanFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::tan(x);
  }
};
struct ErfFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return std::erf(x);
  }
};
struct IsNanFn : Cheap {
  template <typename W>
  static COHORT_INLINE bool Apply(W x) {
    return x != x;
  }
};
struct IsInfFn : Cheap {
  template <typename W>
  static COHORT_INLINE bool Apply(W x) {
    return std::abs(x) == std::numeric_limits<W>::infinity();
  }
};
struct IsFiniteFn : Cheap {
  template <typename W>
  static COHORT_INLINE bool Apply(W x) {
    return std::abs(x) < std::numeric_limits<W>::infinity();
  }
};
struct NotFn : Cheap {
  static COHORT_INLINE bool Apply(bool x) { return !x; }
};

template <typename Fn, typename T, typename R>
std::unique_ptr<OpKernel> MakeUnary() {
  return std::make_unique<UnaryKernel>(Widest<UnaryBody<Fn, T, R>>(Fn::kWide), Fn::kCost);
}

template <typename Fn>
void RegisterFloats(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForFloating(c.node.input(0).dtype(), c.node.op_name(),
                            []<typename T>(T) { return MakeUnary<Fn, T, T>(); });
  });
}
template <typename Fn>
void RegisterNumbers(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForAllNumbers(c.node.input(0).dtype(), c.node.op_name(),
                              []<typename T>(T) { return MakeUnary<Fn, T, T>(); });
  });
}
template <typename Fn>
void RegisterTest(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForFloating(c.node.input(0).dtype(), c.node.op_name(),
                            []<typename T>(T) { return MakeUnary<Fn, T, bool>(); });
  });
}

// 1 / x for integers. 1 / 0 is an error.
template <typename T>
class IntegerReciprocal final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const T* in = x.data<T>();
    Tensor& y = ctx.AllocateOutput(0, x.shape());
    T* out = y.data<T>();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      if (in[i] == 0) throw InvalidArgumentError(StrCat("integer division by zero: element ", i, " of ", x.shape()));
      out[i] = static_cast<T>(T(1) / in[i]);
    }
  }
};

std::unique_ptr<OpKernel> MakeReciprocal(const KernelConstruction& c) {
  switch (c.node.input(0).dtype()) {
    case DType::kInt32: return std::make_unique<IntegerReciprocal<int32_t>>();
    case DType::kInt64: return std::make_unique<IntegerReciprocal<int64_t>>();
    case DType::kUint8: return std::make_unique<IntegerReciprocal<uint8_t>>();
    default: break;
  }
  return cpu::ForFloating(c.node.input(0).dtype(), c.node.op_name(),
                          []<typename T>(T) { return MakeUnary<ReciprocalFn, T, T>(); });
}

}  // namespace

void RegisterUnaryKernels(KernelRegistry& registry) {
  RegisterNumbers<NegFn>(registry, "Neg");
  RegisterNumbers<AbsFn>(registry, "Abs");
  RegisterNumbers<SignFn>(registry, "Sign");
  RegisterNumbers<SquareFn>(registry, "Square");
  RegisterNumbers<RoundFn>(registry, "Round");
  registry.Register("Reciprocal", "CPU", MakeReciprocal);
  RegisterFloats<SqrtFn>(registry, "Sqrt");
  RegisterFloats<RsqrtFn>(registry, "Rsqrt");
  RegisterFloats<FloorFn>(registry, "Floor");
  RegisterFloats<CeilFn>(registry, "Ceil");
  RegisterFloats<ExpFn>(registry, "Exp");
  RegisterFloats<Expm1Fn>(registry, "Expm1");
  RegisterFloats<LogFn>(registry, "Log");
  RegisterFloats<Log1pFn>(registry, "Log1p");
  RegisterFloats<SinFn>(registry, "Sin");
  RegisterFloats<CosFn>(registry, "Cos");
  RegisterFloats<TanFn>(registry, "Tan");
  RegisterFloats<ErfFn>(registry, "Erf");
  RegisterTest<IsNanFn>(registry, "IsNan");
  RegisterTest<IsInfFn>(registry, "IsInf");
  RegisterTest<IsFiniteFn>(registry, "IsFinite");
  registry.Register("LogicalNot", "CPU", [](const KernelConstruction&) { return MakeUnary<NotFn, bool, bool>(); });
}

}  // namespace cohort
