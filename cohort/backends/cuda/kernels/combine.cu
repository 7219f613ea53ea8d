#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/dialect/wrapping.h"
#include "cohort/backends/cuda/kernels/combine.cu.h"

namespace cohort::cuda {
namespace {

// MIN and MAX are NaN if an operand is NaN.
template <CombineOp kOp, typename T>
COHORT_KERNEL T Joined(T a, T b) {
  if constexpr (kOp == CombineOp::kProduct) return MulOf(a, b);
  if constexpr (kOp == CombineOp::kMin) return a != a || a < b ? a : b;
  if constexpr (kOp == CombineOp::kMax) return a != a || a > b ? a : b;
  if constexpr (kOp == CombineOp::kSum || kOp == CombineOp::kMean) return AddOf(a, b);
}

template <CombineOp kOp, typename T>
struct CombineKernel {
  CombineArgs args;
  int64_t packs;  // packs of 16 bytes; the elements behind them are done one by one

  // Joins the i-th N elements of all inputs.
  template <int N>
  COHORT_KERNEL void Join(int64_t i) const {
    Wide<T> joined[N];
    Pack<T, N> pack = LoadPack<N>(static_cast<const T*>(args.in[0]), i);
    for (int k = 0; k < N; ++k) joined[k] = static_cast<Wide<T>>(pack.at[k]);
    for (int input = 1; input < args.inputs; ++input) {
      pack = LoadPack<N>(static_cast<const T*>(args.in[input]), i);
      for (int k = 0; k < N; ++k) joined[k] = Joined<kOp>(joined[k], static_cast<Wide<T>>(pack.at[k]));
    }
    for (int k = 0; k < N; ++k) {
      if constexpr (kOp == CombineOp::kMean) joined[k] = DivOf(joined[k], static_cast<Wide<T>>(args.divisor));
      pack.at[k] = static_cast<T>(joined[k]);
    }
    for (int output = 0; output < args.outputs; ++output) StorePack(static_cast<T*>(args.out[output]), i, pack);
  }

  COHORT_KERNEL void operator()(const Thread& t) const {
    constexpr int kSize = kPackBytes / static_cast<int>(sizeof(T));
    for (int64_t i = t.first(); i < packs; i += t.step()) Join<kSize>(i);
    for (int64_t i = packs * kSize + t.first(); i < args.n; i += t.step()) Join<1>(i);
  }
};

template <CombineOp kOp, typename T>
void LaunchOf(Driver& driver, StreamHandle stream, const CombineArgs& args) {
  constexpr int kSize = kPackBytes / static_cast<int>(sizeof(T));
  bool aligned = true;
  for (int i = 0; i < args.inputs; ++i) aligned = aligned && IsAligned<T, kSize>(static_cast<const T*>(args.in[i]));
  for (int i = 0; i < args.outputs; ++i) aligned = aligned && IsAligned<T, kSize>(static_cast<const T*>(args.out[i]));
  Launch(driver, stream, SizeFor(args.n, aligned ? kSize : 1),
         CombineKernel<kOp, T>{args, aligned ? args.n / kSize : 0});
}

}  // namespace

void LaunchCombine(Driver& driver, StreamHandle stream, CombineOp op, ElementType type, const CombineArgs& args) {
  ForNumbers(type, "a collective", [&]<typename T>(T) {
    switch (op) {
      case CombineOp::kSum: return LaunchOf<CombineOp::kSum, T>(driver, stream, args);
      case CombineOp::kProduct: return LaunchOf<CombineOp::kProduct, T>(driver, stream, args);
      case CombineOp::kMin: return LaunchOf<CombineOp::kMin, T>(driver, stream, args);
      case CombineOp::kMax: return LaunchOf<CombineOp::kMax, T>(driver, stream, args);
      case CombineOp::kMean: return LaunchOf<CombineOp::kMean, T>(driver, stream, args);
    }
  });
}

}  // namespace cohort::cuda
