// Functions of one element, for kernels (elements.h). They compute in the type W, and give what the CPU's kernels give.
// Files *.cu include it.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/limits.h"
#include "cohort/backends/cuda/dialect/wrapping.h"

namespace cohort::cuda {

// Declares a function `name` of one element x.
#define COHORT_UNARY_FUNCTION(name, result) \
  struct name {                             \
    template <typename W>                   \
    COHORT_KERNEL static W Apply(W x) {     \
      return result;                        \
    }                                       \
  }

COHORT_UNARY_FUNCTION(NegFunction, SubOf(W(0), x));
COHORT_UNARY_FUNCTION(SquareFunction, MulOf(x, x));
COHORT_UNARY_FUNCTION(ReciprocalFunction, DivOf(W(1), x));
COHORT_UNARY_FUNCTION(SqrtFunction, std::sqrt(x));
COHORT_UNARY_FUNCTION(RsqrtFunction, W(1) / std::sqrt(x));
COHORT_UNARY_FUNCTION(FloorFunction, std::floor(x));
COHORT_UNARY_FUNCTION(CeilFunction, std::ceil(x));
COHORT_UNARY_FUNCTION(ExpFunction, std::exp(x));
COHORT_UNARY_FUNCTION(Expm1Function, std::expm1(x));
COHORT_UNARY_FUNCTION(LogFunction, std::log(x));
COHORT_UNARY_FUNCTION(Log1pFunction, std::log1p(x));
COHORT_UNARY_FUNCTION(SinFunction, std::sin(x));
COHORT_UNARY_FUNCTION(CosFunction, std::cos(x));
COHORT_UNARY_FUNCTION(TanFunction, std::tan(x));
COHORT_UNARY_FUNCTION(ErfFunction, std::erf(x));
#undef COHORT_UNARY_FUNCTION

struct AbsFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    if constexpr (std::is_floating_point_v<W>) {
      return std::fabs(x);
    } else {
      return x < W(0) ? SubOf(W(0), x) : x;
    }
  }
};
struct SignFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    const W sign = x > W(0) ? W(1) : (x < W(0) ? static_cast<W>(-1) : W(0));
    return x == x ? sign : x;
  }
};
struct RoundFunction {  // halves to even
  template <typename W>
  COHORT_KERNEL static W Apply(W x) {
    if constexpr (std::is_floating_point_v<W>) {
      return std::rint(x);
    } else {
      return x;
    }
  }
};
struct IsNanFunction {
  template <typename W>
  COHORT_KERNEL static bool Apply(W x) {
    return x != x;
  }
};
struct IsInfFunction {
  template <typename W>
  COHORT_KERNEL static bool Apply(W x) {
    return x == kInfinity<W> || x == -kInfinity<W>;
  }
};
struct IsFiniteFunction {
  template <typename W>
  COHORT_KERNEL static bool Apply(W x) {
    return x < kInfinity<W> && x > -kInfinity<W>;
  }
};
struct LogicalNotFunction {
  COHORT_KERNEL static bool Apply(bool x) { return !x; }
};

// The value of an element as another type.
template <typename To>
struct CastFunction {
  template <typename W>
  COHORT_KERNEL static auto Apply(W x) {
    if constexpr (std::is_same_v<To, bool>) {
      return x != W(0);
    } else if constexpr (std::is_floating_point_v<W> && std::is_same_v<To, uint8_t>) {
      return static_cast<uint8_t>(Truncated<int32_t>(x));
    } else if constexpr (std::is_floating_point_v<W> && std::is_integral_v<To>) {
      return Truncated<To>(x);
    } else {
      return static_cast<Wide<To>>(x);
    }
  }

 private:
  template <typename Integer, typename W>
  COHORT_KERNEL static Integer Truncated(W x) {
    constexpr W kBound = static_cast<W>(kLowest<Integer>);
    return x >= kBound && x < -kBound ? static_cast<Integer>(x) : kLowest<Integer>;
  }
};

}  // namespace cohort::cuda
