// Element by element functions of two tensors of one dtype, which broadcast against each other, and operators
// on Output. Either of the two may be a number (operand.h says how it gets the other's dtype). Integers wrap around on
// overflow; integer division by zero is an InvalidArgumentError when the step runs.
#pragma once

#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

Output Add(const Operand& x, const Operand& y, const NodeName& name = "");  // op AddV2
Output Sub(const Operand& x, const Operand& y, const NodeName& name = "");
Output Mul(const Operand& x, const Operand& y, const NodeName& name = "");
// x / y. Integers: truncated towards zero.
Output Div(const Operand& x, const Operand& y, const NodeName& name = "");  // op RealDiv, for integers op Div
Output FloorDiv(const Operand& x, const Operand& y, const NodeName& name = "");
Output FloorMod(const Operand& x, const Operand& y, const NodeName& name = "");  // has the sign of y
Output Maximum(const Operand& x, const Operand& y, const NodeName& name = "");   // NaN where either is NaN
Output Minimum(const Operand& x, const Operand& y, const NodeName& name = "");
Output Pow(const Operand& x, const Operand& y, const NodeName& name = "");
Output SquaredDifference(const Operand& x, const Operand& y, const NodeName& name = "");  // (x - y)^2
// The sum of tensors of one shape and dtype.
Output AddN(const std::vector<Output>& inputs, const NodeName& name = "");

}  // namespace cohort::ops

namespace cohort {

inline Output operator+(const ops::Operand& x, const ops::Operand& y) { return ops::Add(x, y, {"", x.site()}); }
inline Output operator-(const ops::Operand& x, const ops::Operand& y) { return ops::Sub(x, y, {"", x.site()}); }
inline Output operator*(const ops::Operand& x, const ops::Operand& y) { return ops::Mul(x, y, {"", x.site()}); }
inline Output operator/(const ops::Operand& x, const ops::Operand& y) { return ops::Div(x, y, {"", x.site()}); }

}  // namespace cohort
