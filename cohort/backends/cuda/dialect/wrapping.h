// Arithmetic without undefined overflow, for kernels: integers wrap around.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

// An unsigned type that is wide enough so that C++ does not promote it to a signed type.
template <typename T>
using Bits = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;

template <typename T>
COHORT_KERNEL T AddOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b));
  } else {
    return a + b;
  }
}
template <typename T>
COHORT_KERNEL T SubOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(a) - static_cast<Bits<T>>(b));
  } else {
    return a - b;
  }
}
template <typename T>
COHORT_KERNEL T MulOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Bits<T>>(a) * static_cast<Bits<T>>(b));
  } else {
    return a * b;
  }
}
// Returns the quotient. That of integers is rounded towards zero; the lowest integer divided by -1 is itself, and an
// integer divided by 0 is 0: a check reports it.
template <typename T>
COHORT_KERNEL T DivOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T(0)) return T(0);
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return SubOf(T(0), a);
    }
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
}

}  // namespace cohort::cuda
