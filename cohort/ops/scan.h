// Running sums and products along an axis. The result has the shape and dtype of x.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Return out[i] = x[0] + ... + x[i] along `axis`, and the same with products. If `exclusive` is true, x[i] itself is
// left out. If `reverse` is true, they run from the end. Throw InvalidArgumentError for an axis that is out of range.
COHORT_EXPORT Output Cumsum(Output x, int axis, bool exclusive = false, bool reverse = false);
COHORT_EXPORT Output Cumprod(Output x, int axis, bool exclusive = false, bool reverse = false);

}  // namespace cohort::ops
