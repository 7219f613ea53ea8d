// Reducers, for kernels: how reductions join elements. Accumulator<T> is the type in which elements of type T are
// joined; it has 4 or 8 bytes, so that threads can exchange it. Start<T> is the result of no elements. Files *.cu
// include it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/limits.h"
#include "cohort/backends/cuda/dialect/wrapping.h"

namespace cohort::cuda {

// uint8 wraps around in 32 bits as it does in 8, if the result is cut to 8 bits.
template <typename T>
using WideAccumulator = std::conditional_t<sizeof(Wide<T>) == 1, uint32_t, Wide<T>>;

struct SumReducer {
  template <typename T>
  using Accumulator = WideAccumulator<T>;
  template <typename T>
  COHORT_KERNEL static Accumulator<T> Start() {
    return 0;
  }
  template <typename A>
  COHORT_KERNEL A operator()(A a, A b) const {
    return AddOf(a, b);
  }
};
struct MeanReducer : SumReducer {
  template <typename T>
  using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, Wide<T>>;
  template <typename T>
  COHORT_KERNEL static Accumulator<T> Start() {
    return 0;
  }
};
struct ProdReducer {
  template <typename T>
  using Accumulator = WideAccumulator<T>;
  template <typename T>
  COHORT_KERNEL static Accumulator<T> Start() {
    return 1;
  }
  template <typename A>
  COHORT_KERNEL A operator()(A a, A b) const {
    return MulOf(a, b);
  }
};
// The result is NaN if an element is NaN.
struct MaxReducer {
  template <typename T>
  using Accumulator = WideAccumulator<T>;
  template <typename T>
  COHORT_KERNEL static Accumulator<T> Start() {
    return kLowest<Wide<T>>;
  }
  template <typename A>
  COHORT_KERNEL A operator()(A a, A b) const {
    return a > b || a != a ? a : b;
  }
};
struct MinReducer {
  template <typename T>
  using Accumulator = WideAccumulator<T>;
  template <typename T>
  COHORT_KERNEL static Accumulator<T> Start() {
    return kHighest<Wide<T>>;
  }
  template <typename A>
  COHORT_KERNEL A operator()(A a, A b) const {
    return a < b || a != a ? a : b;
  }
};
struct AllReducer {
  template <typename T>
  using Accumulator = uint32_t;
  template <typename T>
  COHORT_KERNEL static uint32_t Start() {
    return 1;
  }
  COHORT_KERNEL uint32_t operator()(uint32_t a, uint32_t b) const { return a & b; }
};
struct AnyReducer {
  template <typename T>
  using Accumulator = uint32_t;
  template <typename T>
  COHORT_KERNEL static uint32_t Start() {
    return 0;
  }
  COHORT_KERNEL uint32_t operator()(uint32_t a, uint32_t b) const { return a | b; }
};

}  // namespace cohort::cuda
