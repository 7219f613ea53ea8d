// Element by element functions of two tensors of one dtype, which broadcast against each other, and operators
// on Output. Either of the two may be a number (operand.h says how it gets the other's dtype). Integers wrap around on
// overflow; integer division by zero is an InvalidArgumentError when the step runs.
#pragma once

#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

COHORT_EXPORT Output Add(const Operand& x, const Operand& y);  // op AddV2
COHORT_EXPORT Output Sub(const Operand& x, const Operand& y);
COHORT_EXPORT Output Mul(const Operand& x, const Operand& y);
// x / y. Integers: truncated towards zero.
COHORT_EXPORT Output Div(const Operand& x, const Operand& y);  // op RealDiv, for integers op Div
COHORT_EXPORT Output FloorDiv(const Operand& x, const Operand& y);
COHORT_EXPORT Output FloorMod(const Operand& x, const Operand& y);  // has the sign of y
COHORT_EXPORT Output Maximum(const Operand& x, const Operand& y);   // NaN where either is NaN
COHORT_EXPORT Output Minimum(const Operand& x, const Operand& y);
COHORT_EXPORT Output Pow(const Operand& x, const Operand& y);
COHORT_EXPORT Output SquaredDifference(const Operand& x, const Operand& y);  // (x - y)^2
// The sum of tensors of one shape and dtype.
COHORT_EXPORT Output AddN(const std::vector<Output>& inputs);

}  // namespace cohort::ops

namespace cohort {

inline Output operator+(const ops::Operand& x, const ops::Operand& y) { return ops::Add(x, y); }
inline Output operator-(const ops::Operand& x, const ops::Operand& y) { return ops::Sub(x, y); }
inline Output operator*(const ops::Operand& x, const ops::Operand& y) { return ops::Mul(x, y); }
inline Output operator/(const ops::Operand& x, const ops::Operand& y) { return ops::Div(x, y); }

}  // namespace cohort
