// Reductions over some or all axes. Axes may be negative and must not repeat. Without `axes` all are reduced. An empty
// list reduces none. If keep_dims is true, each reduced dimension stays as 1. The result has the dtype of x. All and
// Any take bool. Over no elements Sum is 0, Prod is 1, Mean is NaN, Max is the lowest and Min the highest value (-inf,
// inf), All is true, and Any is false. Throw InvalidArgumentError for an axis that is out of range or repeats.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

COHORT_EXPORT Output Sum(Output x);
COHORT_EXPORT Output Sum(Output x, const IntList& axes, bool keep_dims = false);
COHORT_EXPORT Output Mean(Output x);
COHORT_EXPORT Output Mean(Output x, const IntList& axes, bool keep_dims = false);
COHORT_EXPORT Output Max(Output x);
COHORT_EXPORT Output Max(Output x, const IntList& axes, bool keep_dims = false);
COHORT_EXPORT Output Min(Output x);
COHORT_EXPORT Output Min(Output x, const IntList& axes, bool keep_dims = false);
COHORT_EXPORT Output Prod(Output x);
COHORT_EXPORT Output Prod(Output x, const IntList& axes, bool keep_dims = false);
COHORT_EXPORT Output All(Output x);  // takes and returns bool
COHORT_EXPORT Output All(Output x, const IntList& axes, bool keep_dims = false);
COHORT_EXPORT Output Any(Output x);
COHORT_EXPORT Output Any(Output x, const IntList& axes, bool keep_dims = false);

// Return the position of the first largest (smallest) element along `axis`, which is removed. `output_type` is int32 or
// int64.
COHORT_EXPORT Output ArgMax(Output x, int axis, DType output_type = DType::kInt64);
COHORT_EXPORT Output ArgMin(Output x, int axis, DType output_type = DType::kInt64);

}  // namespace cohort::ops
