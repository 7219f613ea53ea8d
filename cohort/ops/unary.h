// Functions of one tensor, element by element. The result has the shape of x and, unless a comment says otherwise, its
// dtype. Throw InvalidArgumentError for a dtype that the op does not take, when the node is added.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::ops {

Output Neg(Output x);
Output Abs(Output x);
Output Sign(Output x);  // -1, 0 or 1; NaN stays NaN
Output Exp(Output x);
Output Expm1(Output x);  // e^x - 1
Output Log(Output x);
Output Log1p(Output x);  // ln(1 + x)
Output Sqrt(Output x);
Output Rsqrt(Output x);  // 1 / sqrt(x)
Output Square(Output x);
Output Reciprocal(Output x);  // 1 / x
Output Sin(Output x);
Output Cos(Output x);
Output Tan(Output x);
Output Erf(Output x);
Output Floor(Output x);
Output Ceil(Output x);
Output Round(Output x);     // halves are rounded to the even neighbour
Output IsNan(Output x);     // bool
Output IsInf(Output x);     // bool
Output IsFinite(Output x);  // bool

}  // namespace cohort::ops

namespace cohort {

inline Output operator-(Output x) { return ops::Neg(x); }

}  // namespace cohort
