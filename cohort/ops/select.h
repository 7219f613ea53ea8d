// Choosing between values, of which some may be numbers (operand.h).
#pragma once

#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// t where `condition` (bool) holds, e elsewhere; all three broadcast.
Output SelectV2(const Operand& condition, const Operand& t, const Operand& e, const NodeName& name = "");
// The older form: t and e have one shape, `condition` has it too, or is a scalar, or a vector that chooses
// rows.
Output Select(const Operand& condition, const Operand& t, const Operand& e, const NodeName& name = "");
// min(max(t, low), high) with bounds that are scalars or have t's shape.
Output ClipByValue(const Operand& t, const Operand& low, const Operand& high, const NodeName& name = "");

}  // namespace cohort::ops
