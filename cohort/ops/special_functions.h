// Less common functions of real numbers, element by element: the inverse and the hyperbolic functions, and quotients
// and logarithms that are 0 if the factor is 0. They take bfloat16, float32 and float64, and return the same dtype.
// The functions of two tensors broadcast as those of arithmetic.h. Throw InvalidArgumentError for other dtypes and for
// shapes that do not fit.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

COHORT_EXPORT Output Asin(Output x, const NodeName& name = "");  // in [-pi/2, pi/2]; NaN if |x| > 1
COHORT_EXPORT Output Acos(Output x, const NodeName& name = "");  // in [0, pi]; NaN if |x| > 1
COHORT_EXPORT Output Atan(Output x, const NodeName& name = "");  // in [-pi/2, pi/2]
COHORT_EXPORT Output Sinh(Output x, const NodeName& name = "");
COHORT_EXPORT Output Cosh(Output x, const NodeName& name = "");
COHORT_EXPORT Output Asinh(Output x, const NodeName& name = "");
COHORT_EXPORT Output Acosh(Output x, const NodeName& name = "");  // NaN if x < 1
COHORT_EXPORT Output Atanh(Output x, const NodeName& name = "");  // NaN if |x| > 1

// Returns the angle of the point (x, y) in [-pi, pi].
COHORT_EXPORT Output Atan2(const Operand& y, const Operand& x, const NodeName& name = "");
// Return x / y and x * log(y), and 0 if x is 0, whatever y is.
COHORT_EXPORT Output Xdivy(const Operand& x, const Operand& y, const NodeName& name = "");
COHORT_EXPORT Output Xlogy(const Operand& x, const Operand& y, const NodeName& name = "");

}  // namespace cohort::ops
