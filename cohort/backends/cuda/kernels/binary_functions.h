// Functions of two elements, for kernels (elements.h). They compute in the type W, and give what the CPU's kernels
// give. Files *.cu include it.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/wrapping.h"

namespace cohort::cuda {

// Declares a function `name` of two elements x and y, with the result type R.
#define COHORT_BINARY_FUNCTION(name, R, result) \
  struct name {                                 \
    template <typename W>                       \
    COHORT_KERNEL static R Apply(W x, W y) {    \
      return result;                            \
    }                                           \
  }

COHORT_BINARY_FUNCTION(AddFunction, W, AddOf(x, y));
COHORT_BINARY_FUNCTION(SubFunction, W, SubOf(x, y));
COHORT_BINARY_FUNCTION(MulFunction, W, MulOf(x, y));
COHORT_BINARY_FUNCTION(DivFunction, W, DivOf(x, y));
// If one of the numbers is NaN, so is the result: x > y is then false.
COHORT_BINARY_FUNCTION(MaximumFunction, W, x > y || x != x ? x : y);
COHORT_BINARY_FUNCTION(MinimumFunction, W, x < y || x != x ? x : y);
COHORT_BINARY_FUNCTION(SquaredDifferenceFunction, W, MulOf(SubOf(x, y), SubOf(x, y)));

COHORT_BINARY_FUNCTION(EqualFunction, bool, x == y);
COHORT_BINARY_FUNCTION(NotEqualFunction, bool, x != y);
COHORT_BINARY_FUNCTION(LessFunction, bool, x < y);
COHORT_BINARY_FUNCTION(LessEqualFunction, bool, x <= y);
COHORT_BINARY_FUNCTION(GreaterFunction, bool, x > y);
COHORT_BINARY_FUNCTION(GreaterEqualFunction, bool, x >= y);
#undef COHORT_BINARY_FUNCTION

struct LogicalAndFunction {
  COHORT_KERNEL static bool Apply(bool x, bool y) { return x && y; }
};
struct LogicalOrFunction {
  COHORT_KERNEL static bool Apply(bool x, bool y) { return x || y; }
};

// The quotient, rounded down.
struct FloorDivFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x, W y) {
    if constexpr (std::is_floating_point_v<W>) {
      return std::floor(x / y);
    } else {
      const W quotient = DivOf(x, y);
      const bool inexact = MulOf(quotient, y) != x;
      return inexact && ((x < W(0)) != (y < W(0))) ? static_cast<W>(quotient - 1) : quotient;
    }
  }
};
// The rest of that division, which has the sign of y.
struct FloorModFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x, W y) {
    if constexpr (std::is_floating_point_v<W>) {
      const W rest = std::fmod(x, y);
      return rest != W(0) && ((rest < W(0)) != (y < W(0))) ? rest + y : rest;
    } else {
      return SubOf(x, MulOf(FloorDivFunction::Apply(x, y), y));
    }
  }
};
// x to the power of y. An integer x to a negative power is 1: a check reports it.
struct PowFunction {
  template <typename W>
  COHORT_KERNEL static W Apply(W x, W y) {
    if constexpr (std::is_floating_point_v<W>) {
      return std::pow(x, y);
    } else {
      W result = 1;
      for (; y > 0; y = static_cast<W>(y >> 1), x = MulOf(x, x)) {
        if ((y & 1) != 0) result = MulOf(result, x);
      }
      return result;
    }
  }
};

}  // namespace cohort::cuda
