// The same elements in another order along the axes.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

// Dimension i of the result is dimension perm[i] of x.
COHORT_EXPORT Output Transpose(Output x, const IntList& perm);
// y[x[i]] = i for a vector x that holds 0..n-1 in some order.
COHORT_EXPORT Output InvertPermutation(Output x);
// Backwards along the axes.
COHORT_EXPORT Output Reverse(Output tensor, const IntList& axes);  // op ReverseV2

}  // namespace cohort::ops
