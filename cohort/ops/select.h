// Choosing between values.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::ops {

// t where `condition` (bool) holds, e elsewhere; all three broadcast.
Output SelectV2(Output condition, Output t, Output e);
// The older form: t and e have one shape, `condition` has it too, or is a scalar, or a vector that chooses
// rows.
Output Select(Output condition, Output t, Output e);
// min(max(t, low), high) with bounds that are scalars or have t's shape.
Output ClipByValue(Output t, Output low, Output high);

}  // namespace cohort::ops
