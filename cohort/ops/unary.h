// Element by element functions of one tensor. The result has the shape and, unless said otherwise, the dtype
// of x.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::ops {

Output Neg(Output x, const NodeName& name = "");
Output Abs(Output x, const NodeName& name = "");
Output Sign(Output x, const NodeName& name = "");  // -1, 0 or 1; NaN stays NaN
Output Exp(Output x, const NodeName& name = "");
Output Expm1(Output x, const NodeName& name = "");  // e^x - 1
Output Log(Output x, const NodeName& name = "");
Output Log1p(Output x, const NodeName& name = "");  // ln(1 + x)
Output Sqrt(Output x, const NodeName& name = "");
Output Rsqrt(Output x, const NodeName& name = "");  // 1 / sqrt(x)
Output Square(Output x, const NodeName& name = "");
Output Reciprocal(Output x, const NodeName& name = "");  // 1 / x
Output Sin(Output x, const NodeName& name = "");
Output Cos(Output x, const NodeName& name = "");
Output Tan(Output x, const NodeName& name = "");
Output Erf(Output x, const NodeName& name = "");
Output Floor(Output x, const NodeName& name = "");
Output Ceil(Output x, const NodeName& name = "");
Output Round(Output x, const NodeName& name = "");     // halves to the even neighbour
Output IsNan(Output x, const NodeName& name = "");     // bool
Output IsInf(Output x, const NodeName& name = "");     // bool
Output IsFinite(Output x, const NodeName& name = "");  // bool

}  // namespace cohort::ops

namespace cohort {

inline Output operator-(const ops::Operand& x) { return ops::Neg(x.output(), {"", x.site()}); }

}  // namespace cohort
