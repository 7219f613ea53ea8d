// Running sums and products along an axis.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// out[i] = x[0] + ... + x[i] along `axis`; `exclusive` leaves x[i] itself out; `reverse` runs from the end.
COHORT_EXPORT Output Cumsum(Output x, int axis, bool exclusive = false, bool reverse = false);
COHORT_EXPORT Output Cumprod(Output x, int axis, bool exclusive = false, bool reverse = false);

}  // namespace cohort::ops
