// Arithmetic without undefined overflow: integers wrap around. Only division of integers has a requirement (see Div).
// Internal to backends/cpu/kernels.
#pragma once

#include <type_traits>

#include "cohort/backends/cpu/kernels/simd.h"

namespace cohort::cpu {

// An unsigned type that is wide enough so that C++ does not promote it to a signed type.
template <typename T>
using Bits = std::conditional_t<sizeof(T) <= 4, unsigned, unsigned long>;

// The operations + - * / for the type T.
template <typename T>
struct Wrapping {
  static COHORT_INLINE T Add(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Bits<T>(a) + Bits<T>(b));
    else
      return a + b;
  }
  static COHORT_INLINE T Sub(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Bits<T>(a) - Bits<T>(b));
    else
      return a - b;
  }
  static COHORT_INLINE T Mul(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(Bits<T>(a) * Bits<T>(b));
    else
      return a * b;
  }
  // Returns the quotient of `a` and `b`. The quotient of integers is rounded towards zero. If `a` is the lowest integer
  // and `b` is -1, the result is `a`. Requires: an integer `b` is not 0.
  static COHORT_INLINE T Div(T a, T b) {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      return b == T(-1) ? Sub(T(0), a) : static_cast<T>(a / b);
    else
      return static_cast<T>(a / b);
  }
};

template <>
struct Wrapping<bool>;  // there is no arithmetic on truth values

}  // namespace cohort::cpu
