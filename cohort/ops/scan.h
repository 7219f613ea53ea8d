// Running sums and products along an axis.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::ops {

// out[i] = x[0] + ... + x[i] along `axis`; `exclusive` leaves x[i] itself out; `reverse` runs from the end.
Output Cumsum(Output x, int axis, bool exclusive = false, bool reverse = false, const NodeName& name = "");
Output Cumprod(Output x, int axis, bool exclusive = false, bool reverse = false, const NodeName& name = "");

}  // namespace cohort::ops
