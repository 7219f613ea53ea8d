// Ops that change the order of elements along axes. They take every dtype. All throw InvalidArgumentError for axes that
// do not fit.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

// Returns x with reordered dimensions: dimension i of the result is dimension perm[i] of x.
COHORT_EXPORT Output Transpose(Output x, const IntList& perm);
// Returns y with y[x[i]] = i. x is an int32 or int64 vector with the numbers 0 to n-1 in some order.
COHORT_EXPORT Output InvertPermutation(Output x);
// Returns the tensor with the elements in reverse order along the axes.
COHORT_EXPORT Output Reverse(Output tensor, const IntList& axes);  // op ReverseV2

}  // namespace cohort::ops
