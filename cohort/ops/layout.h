// The same elements in another order along the axes.
#pragma once

#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

// Dimension i of the result is dimension perm[i] of x.
Output Transpose(Output x, const IntList& perm, const NodeName& name = "");
// y[x[i]] = i for a vector x that holds 0..n-1 in some order.
Output InvertPermutation(Output x, const NodeName& name = "");
// Backwards along the axes.
Output Reverse(Output tensor, const IntList& axes, const NodeName& name = "");  // op ReverseV2

}  // namespace cohort::ops
