// Divides vectors by their lengths. Internal to keras/.
#pragma once

#include "cohort/ops/arithmetic.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {

// Returns x with its vectors along `axes` multiplied by min(1 / length, 1 / epsilon), as Keras does.
inline Output UnitLength(Output x, const ops::IntList& axes, double epsilon) {
  const Output squares = ops::Sum(ops::Square(x), axes, true);
  return ops::Mul(x, ops::Minimum(ops::Rsqrt(squares), 1 / epsilon));
}

}  // namespace cohort::keras
