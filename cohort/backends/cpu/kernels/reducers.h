// Reducers: how reduction kernels combine elements. The Accumulator A is the type in which elements are combined. Start
// is the first value of an accumulator, and Join combines two values. The elements of a row go into sixteen
// accumulators (lanes) in turn, and the lanes are joined in a fixed order. So results do not depend on the width of
// vectors or on the number of threads. Internal to backends/cpu/kernels.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/wrapping.h"

namespace cohort::cpu {

template <typename A>
constexpr A Lowest() {
  if constexpr (std::numeric_limits<A>::has_infinity)
    return -std::numeric_limits<A>::infinity();
  else
    return std::numeric_limits<A>::lowest();
}
template <typename A>
constexpr A Highest() {
  if constexpr (std::numeric_limits<A>::has_infinity)
    return std::numeric_limits<A>::infinity();
  else
    return std::numeric_limits<A>::max();
}

// A sum. RowBody cuts a long row into blocks. It sums each block in the type Accumulator, and adds these sums in the
// type Total.
struct SumReducer {
  template <typename T>
  using Accumulator = Wide<T>;
  template <typename A>
  using Total = std::conditional_t<std::is_same_v<A, float>, double, A>;
  template <typename A>
  static constexpr A Start() {
    return A(0);
  }
  template <typename A>
  static COHORT_INLINE A Join(A a, A b) {
    return Wrapping<A>::Add(a, b);
  }
};
// The sum for a mean. Sums of integers are int64, so that they do not overflow.
struct MeanReducer : SumReducer {
  template <typename T>
  using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, Wide<T>>;
};
struct ProdReducer {
  template <typename T>
  using Accumulator = Wide<T>;
  template <typename A>
  using Total = A;
  template <typename A>
  static constexpr A Start() {
    return A(1);
  }
  template <typename A>
  static COHORT_INLINE A Join(A a, A b) {
    return Wrapping<A>::Mul(a, b);
  }
};
struct MaxReducer {
  template <typename T>
  using Accumulator = Wide<T>;
  template <typename A>
  using Total = A;
  template <typename A>
  static constexpr A Start() {
    return Lowest<A>();
  }
  template <typename A>
  static COHORT_INLINE A Join(A a, A b) {
    return a > b || a != a ? a : b;
  }
};
struct MinReducer {
  template <typename T>
  using Accumulator = Wide<T>;
  template <typename A>
  using Total = A;
  template <typename A>
  static constexpr A Start() {
    return Highest<A>();
  }
  template <typename A>
  static COHORT_INLINE A Join(A a, A b) {
    return a < b || a != a ? a : b;
  }
};
struct AllReducer {
  template <typename T>
  using Accumulator = Wide<T>;
  template <typename A>
  using Total = A;
  template <typename A>
  static constexpr A Start() {
    return true;
  }
  template <typename A>
  static COHORT_INLINE A Join(A a, A b) {
    return a & b;
  }
};
struct AnyReducer {
  template <typename T>
  using Accumulator = Wide<T>;
  template <typename A>
  using Total = A;
  template <typename A>
  static constexpr A Start() {
    return false;
  }
  template <typename A>
  static COHORT_INLINE A Join(A a, A b) {
    return a | b;
  }
};

// Computes *result = Join(*result, the reduction of the n elements).
template <typename R, typename T>
struct RowBody {
  using A = typename R::template Accumulator<T>;
  using Total = typename R::template Total<A>;
  static constexpr int64_t kLanes = 16;
  static constexpr int64_t kBlock = 1024;  // elements that are combined in A before they are added to Total

  static COHORT_INLINE void Run(const T* in, int64_t n, A* result) {
    Total total = static_cast<Total>(*result);
    while (n >= kLanes) {
      const int64_t count = n < kBlock ? n / kLanes * kLanes : kBlock;
      std::array<A, kLanes> lanes;
      for (A& lane : lanes) lane = R::template Start<A>();
      for (int64_t i = 0; i < count; i += kLanes) {
#pragma omp simd
        for (int64_t l = 0; l < kLanes; ++l) {
          lanes[static_cast<size_t>(l)] = R::Join(lanes[static_cast<size_t>(l)], static_cast<A>(in[i + l]));
        }
      }
      for (size_t half = kLanes / 2; half > 0; half /= 2) {
        for (size_t l = 0; l < half; ++l) lanes[l] = R::Join(lanes[l], lanes[l + half]);
      }
      total = R::Join(total, static_cast<Total>(lanes[0]));
      in += count;
      n -= count;
    }
    for (int64_t i = 0; i < n; ++i) total = R::Join(total, static_cast<Total>(static_cast<A>(in[i])));
    *result = static_cast<A>(total);
  }
};

// Computes result[j] = Join(result[j], the reduction over rows of in[row * stride + j]) for j < n. `block` is memory
// for partial results, used only if there are more than kRows rows. Requires: it then has room for n elements.
template <typename R, typename T>
struct ColumnBody {
  using A = typename R::template Accumulator<T>;
  static constexpr int64_t kRows = 256;  // rows that are combined before they are joined with the result

  static COHORT_INLINE void Run(const T* in, int64_t rows, int64_t stride, int64_t n, A* result, A* block) {
    for (int64_t first = 0; first < rows; first += kRows) {
      const int64_t last = first + kRows < rows ? first + kRows : rows;
      const bool direct = rows <= kRows;
      A* to = direct ? result : block;
      if (!direct) {
        for (int64_t j = 0; j < n; ++j) block[j] = R::template Start<A>();
      }
      for (int64_t row = first; row < last; ++row) {
        const T* from = in + row * stride;
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) to[j] = R::Join(to[j], static_cast<A>(from[j]));
      }
      if (direct) continue;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) result[j] = R::Join(result[j], block[j]);
    }
  }
};

}  // namespace cohort::cpu
