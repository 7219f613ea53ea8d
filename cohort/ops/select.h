// Ops that choose between values. Some of the values may be numbers (operand.h). t and e have one dtype, which the
// result has, too. Throw InvalidArgumentError for shapes that do not fit.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns the element of t if that of `condition` (bool) is true, else that of e. All three broadcast.
COHORT_EXPORT Output SelectV2(const Operand& condition, const Operand& t, const Operand& e);
// The older form of SelectV2. t and e have one shape. `condition` has the same shape, or is a scalar, or is a vector
// that chooses rows.
COHORT_EXPORT Output Select(const Operand& condition, const Operand& t, const Operand& e);
// Returns min(max(t, low), high). The bounds are scalars or have t's shape.
COHORT_EXPORT Output ClipByValue(const Operand& t, const Operand& low, const Operand& high);

}  // namespace cohort::ops
