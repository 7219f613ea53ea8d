// Functions of one tensor, element by element. The result has the shape of x and, unless a comment says otherwise, its
// dtype. Throw InvalidArgumentError for a dtype that the op does not take, when the node is added.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

COHORT_EXPORT Output Neg(Output x, const NodeName& name = "");
COHORT_EXPORT Output Abs(Output x, const NodeName& name = "");
COHORT_EXPORT Output Sign(Output x, const NodeName& name = "");  // -1, 0 or 1; NaN stays NaN
COHORT_EXPORT Output Exp(Output x, const NodeName& name = "");
COHORT_EXPORT Output Expm1(Output x, const NodeName& name = "");  // e^x - 1
COHORT_EXPORT Output Log(Output x, const NodeName& name = "");
COHORT_EXPORT Output Log1p(Output x, const NodeName& name = "");  // ln(1 + x)
COHORT_EXPORT Output Sqrt(Output x, const NodeName& name = "");
COHORT_EXPORT Output Rsqrt(Output x, const NodeName& name = "");  // 1 / sqrt(x)
COHORT_EXPORT Output Square(Output x, const NodeName& name = "");
COHORT_EXPORT Output Reciprocal(Output x, const NodeName& name = "");  // 1 / x
COHORT_EXPORT Output Sin(Output x, const NodeName& name = "");
COHORT_EXPORT Output Cos(Output x, const NodeName& name = "");
COHORT_EXPORT Output Tan(Output x, const NodeName& name = "");
COHORT_EXPORT Output Erf(Output x, const NodeName& name = "");
COHORT_EXPORT Output Floor(Output x, const NodeName& name = "");
COHORT_EXPORT Output Ceil(Output x, const NodeName& name = "");
COHORT_EXPORT Output Round(Output x, const NodeName& name = "");     // halves are rounded to the even neighbour
COHORT_EXPORT Output IsNan(Output x, const NodeName& name = "");     // bool
COHORT_EXPORT Output IsInf(Output x, const NodeName& name = "");     // bool
COHORT_EXPORT Output IsFinite(Output x, const NodeName& name = "");  // bool

}  // namespace cohort::ops

namespace cohort {

inline Output operator-(const ops::Operand& x) { return ops::Neg(x.output(), {"", x.site()}); }

}  // namespace cohort
