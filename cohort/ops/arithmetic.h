// Functions of two tensors, element by element, and operators on Output. Both tensors have the same dtype, and the
// result has this dtype too. Their shapes broadcast against each other. One of the two may be a number of C++
// (operand.h says which dtype it gets). Integers wrap around on overflow. If an integer is divided by zero, the step
// fails with InvalidArgumentError. The functions throw InvalidArgumentError if the dtypes differ, or if the shapes are
// known and do not broadcast. If the shapes are known only in the step, the step fails with this error.
#pragma once

#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

COHORT_EXPORT Output Add(const Operand& x, const Operand& y, const NodeName& name = "");  // op AddV2
COHORT_EXPORT Output Sub(const Operand& x, const Operand& y, const NodeName& name = "");
COHORT_EXPORT Output Mul(const Operand& x, const Operand& y, const NodeName& name = "");
// Returns x / y. Integers are truncated towards zero.
COHORT_EXPORT Output Div(const Operand& x, const Operand& y,
                         const NodeName& name = "");  // op RealDiv, for integers op Div
COHORT_EXPORT Output FloorDiv(const Operand& x, const Operand& y, const NodeName& name = "");
COHORT_EXPORT Output FloorMod(const Operand& x, const Operand& y, const NodeName& name = "");  // has the sign of y
// Maximum and Minimum return NaN if x or y is NaN.
COHORT_EXPORT Output Maximum(const Operand& x, const Operand& y, const NodeName& name = "");
COHORT_EXPORT Output Minimum(const Operand& x, const Operand& y, const NodeName& name = "");
COHORT_EXPORT Output Pow(const Operand& x, const Operand& y, const NodeName& name = "");
COHORT_EXPORT Output SquaredDifference(const Operand& x, const Operand& y, const NodeName& name = "");  // (x - y)^2
// Returns the sum of tensors that all have the same shape and dtype. Throws InvalidArgumentError if `inputs` is empty
// or if the dtypes or known shapes of the tensors differ.
COHORT_EXPORT Output AddN(const std::vector<Output>& inputs, const NodeName& name = "");

}  // namespace cohort::ops

namespace cohort {

inline Output operator+(const ops::Operand& x, const ops::Operand& y) { return ops::Add(x, y, {"", x.site()}); }
inline Output operator-(const ops::Operand& x, const ops::Operand& y) { return ops::Sub(x, y, {"", x.site()}); }
inline Output operator*(const ops::Operand& x, const ops::Operand& y) { return ops::Mul(x, y, {"", x.site()}); }
inline Output operator/(const ops::Operand& x, const ops::Operand& y) { return ops::Div(x, y, {"", x.site()}); }

}  // namespace cohort
