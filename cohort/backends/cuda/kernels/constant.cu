#include <type_traits>

#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/dialect/wrapping.h"
#include "cohort/backends/cuda/kernels/constant.cu.h"

namespace cohort::cuda {
namespace {

template <typename T>
struct FillKernel {
  const T* value;  // if null, `number` is the value
  T number;
  T* out;
  int64_t n;
  int64_t packs;

  COHORT_KERNEL void operator()(const Thread& t) const {
    constexpr int kAtOnce = Pack<T>::kSize;
    const T one = value != nullptr ? *value : number;
    Pack<T> pack;
    for (int k = 0; k < kAtOnce; ++k) pack.at[k] = one;
    for (int64_t i = t.first(); i < packs; i += t.step()) StorePack(out, i, pack);
    for (int64_t i = packs * kAtOnce + t.first(); i < n; i += t.step()) out[i] = one;
  }
};

template <typename T>
void Fill(Driver& driver, StreamHandle stream, const T* value, T number, void* out, int64_t n) {
  constexpr int kAtOnce = Pack<T>::kSize;
  auto* to = static_cast<T*>(out);
  const bool aligned = IsAligned<T, kAtOnce>(to);
  Launch(driver, stream, SizeFor(n, aligned ? kAtOnce : 1),
         FillKernel<T>{value, number, to, n, aligned ? n / kAtOnce : 0});
}

template <typename T>
struct RangeKernel {
  T start;
  T delta;
  T* out;
  int64_t n;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < n; i += t.step()) out[i] = AddOf(start, MulOf(static_cast<T>(i), delta));
  }
};

}  // namespace

void LaunchFill(Driver& driver, StreamHandle stream, size_t element_bytes, const void* value, void* out, int64_t n) {
  ForSizes(element_bytes, "Fill",
           [&]<typename T>(T) { Fill<T>(driver, stream, static_cast<const T*>(value), T(), out, n); });
}

void LaunchOnes(Driver& driver, StreamHandle stream, ElementType type, void* out, int64_t n) {
  if (type == ElementType::kBool) return Fill<bool>(driver, stream, nullptr, true, out, n);
  ForNumbers(type, "OnesLike",
             [&]<typename T>(T) { Fill<T>(driver, stream, nullptr, static_cast<T>(Wide<T>(1)), out, n); });
}

void LaunchRange(Driver& driver, StreamHandle stream, ElementType type, const void* start, const void* delta, void* out,
                 int64_t n) {
  ForNumbers(type, "Range", [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, BFloat16>) {
      Launch(driver, stream, SizeFor(n),
             RangeKernel<T>{*static_cast<const T*>(start), *static_cast<const T*>(delta), static_cast<T*>(out), n});
    }
  });
}

}  // namespace cohort::cuda
