// Element by element functions of two tensors of one dtype, which broadcast against each other, and operators
// on Output. Integers wrap around on overflow; integer division by zero is an InvalidArgumentError when the
// step runs.
#pragma once

#include <vector>

#include "cohort/graph/graph.h"

namespace cohort::ops {

Output Add(Output x, Output y);  // op AddV2
Output Sub(Output x, Output y);
Output Mul(Output x, Output y);
// x / y. Integers: truncated towards zero.
Output Div(Output x, Output y);  // op RealDiv, for integers op Div
Output FloorDiv(Output x, Output y);
Output FloorMod(Output x, Output y);  // has the sign of y
Output Maximum(Output x, Output y);   // NaN where either is NaN
Output Minimum(Output x, Output y);
Output Pow(Output x, Output y);
Output SquaredDifference(Output x, Output y);  // (x - y)^2
// The sum of tensors of one shape and dtype.
Output AddN(const std::vector<Output>& inputs);

}  // namespace cohort::ops

namespace cohort {

inline Output operator+(Output x, Output y) { return ops::Add(x, y); }
inline Output operator-(Output x, Output y) { return ops::Sub(x, y); }
inline Output operator*(Output x, Output y) { return ops::Mul(x, y); }
inline Output operator/(Output x, Output y) { return ops::Div(x, y); }
// With a constant of the tensor's dtype.
Output operator+(Output x, float y);
Output operator+(float x, Output y);
Output operator-(Output x, float y);
Output operator-(float x, Output y);
Output operator*(Output x, float y);
Output operator*(float x, Output y);
Output operator/(Output x, float y);
Output operator/(float x, Output y);

}  // namespace cohort
