// Functions of one tensor, element by element. The result has the shape of x and, unless a comment says otherwise, its
// dtype. Throw InvalidArgumentError for a dtype that the op does not take, when the node is added.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

COHORT_EXPORT Output Neg(Output x);
COHORT_EXPORT Output Abs(Output x);
COHORT_EXPORT Output Sign(Output x);  // -1, 0 or 1; NaN stays NaN
COHORT_EXPORT Output Exp(Output x);
COHORT_EXPORT Output Expm1(Output x);  // e^x - 1
COHORT_EXPORT Output Log(Output x);
COHORT_EXPORT Output Log1p(Output x);  // ln(1 + x)
COHORT_EXPORT Output Sqrt(Output x);
COHORT_EXPORT Output Rsqrt(Output x);  // 1 / sqrt(x)
COHORT_EXPORT Output Square(Output x);
COHORT_EXPORT Output Reciprocal(Output x);  // 1 / x
COHORT_EXPORT Output Sin(Output x);
COHORT_EXPORT Output Cos(Output x);
COHORT_EXPORT Output Tan(Output x);
COHORT_EXPORT Output Erf(Output x);
COHORT_EXPORT Output Floor(Output x);
COHORT_EXPORT Output Ceil(Output x);
COHORT_EXPORT Output Round(Output x);     // halves are rounded to the even neighbour
COHORT_EXPORT Output IsNan(Output x);     // bool
COHORT_EXPORT Output IsInf(Output x);     // bool
COHORT_EXPORT Output IsFinite(Output x);  // bool

}  // namespace cohort::ops

namespace cohort {

inline Output operator-(Output x) { return ops::Neg(x); }

}  // namespace cohort
