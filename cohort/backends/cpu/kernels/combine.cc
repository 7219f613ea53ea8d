#include "cohort/backends/cpu/kernels/combine.h"

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/backends/cpu/kernels/wrapping.h"

namespace cohort::cpu {
namespace {

template <ReduceOp kOp, typename T>
COHORT_INLINE T Combined(T a, T b, T divisor) {
  if constexpr (kOp == ReduceOp::kSum) return Wrapping<T>::Add(a, b);
  if constexpr (kOp == ReduceOp::kMean) return Wrapping<T>::Div(Wrapping<T>::Add(a, b), divisor);
  if constexpr (kOp == ReduceOp::kProduct) return Wrapping<T>::Mul(a, b);
  if constexpr (kOp == ReduceOp::kMin) return a != a || a < b ? a : b;
  if constexpr (kOp == ReduceOp::kMax) return a != a || a > b ? a : b;
}

template <ReduceOp kOp, typename A, typename B, typename Out>
struct CombineLoop {
  static COHORT_INLINE void Run(const void* a, const void* b, void* out, int64_t n, int64_t divisor) {
    const A* left = static_cast<const A*>(a);
    const B* right = static_cast<const B*>(b);
    Out* result = static_cast<Out*>(out);
    using T = Wide<Out>;
    const T by = static_cast<T>(divisor);
    COHORT_INDEPENDENT_PASSES
    for (int64_t i = 0; i < n; ++i) {
      result[i] = static_cast<Out>(Combined<kOp, T>(static_cast<T>(left[i]), static_cast<T>(right[i]), by));
    }
  }
};

template <ReduceOp kOp, typename T>
ReduceFn Of(DType a, DType b, DType out) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    const auto pick_out = [out]<typename A, typename B>() -> ReduceFn {
      return out == DType::kFloat32 ? Widest<CombineLoop<kOp, A, B, float>>()
                                    : Widest<CombineLoop<kOp, A, B, bfloat16>>();
    };
    if (a == DType::kFloat32 && b == DType::kFloat32) return pick_out.template operator()<float, float>();
    if (a == DType::kFloat32) return pick_out.template operator()<float, bfloat16>();
    if (b == DType::kFloat32) return pick_out.template operator()<bfloat16, float>();
    return pick_out.template operator()<bfloat16, bfloat16>();
  } else {
    return Widest<CombineLoop<kOp, T, T, T>>();
  }
}

}  // namespace

DType AccumulatorOf(DType dtype) { return dtype == DType::kBfloat16 ? DType::kFloat32 : dtype; }

ReduceFn Combiner(ReduceOp op, DType dtype, DType a, DType b, DType out) {
  for (const DType given : {a, b, out}) {
    if (given != dtype && given != AccumulatorOf(dtype)) {
      throw UnimplementedError(StrCat("[backends/cpu] a reduction of ", dtype, " takes no operand of ", given));
    }
  }
  return ForAllNumbers(dtype, StrCat("the reduction ", ReduceOpName(op)), [&](auto element) -> ReduceFn {
    using T = decltype(element);
    switch (op) {
      case ReduceOp::kSum: return Of<ReduceOp::kSum, T>(a, b, out);
      case ReduceOp::kProduct: return Of<ReduceOp::kProduct, T>(a, b, out);
      case ReduceOp::kMin: return Of<ReduceOp::kMin, T>(a, b, out);
      case ReduceOp::kMax: return Of<ReduceOp::kMax, T>(a, b, out);
      case ReduceOp::kMean: return Of<ReduceOp::kMean, T>(a, b, out);
    }
    throw InvalidArgumentError(StrCat("[backends/cpu] there is no reduction ", static_cast<int>(op)));
  });
}

}  // namespace cohort::cpu

namespace cohort {

void RegisterCpuReductions(Reductions& reductions) {
  reductions.Register(kHostDeviceType, {cpu::AccumulatorOf, cpu::Combiner});
}

}  // namespace cohort
