// Reductions over some or all axes. Axes may be negative and must not repeat. Without `axes` all are reduced. An empty
// list reduces none. If keep_dims is true, each reduced dimension stays as 1. The result has the dtype of x. All and
// Any take bool. Over no elements Sum is 0, Prod is 1, Mean is NaN, Max is the lowest and Min the highest value (-inf,
// inf), All is true, and Any is false. Throw InvalidArgumentError for an axis that is out of range or repeats.
#pragma once

#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

Output Sum(Output x);
Output Sum(Output x, const IntList& axes, bool keep_dims = false);
Output Mean(Output x);
Output Mean(Output x, const IntList& axes, bool keep_dims = false);
Output Max(Output x);
Output Max(Output x, const IntList& axes, bool keep_dims = false);
Output Min(Output x);
Output Min(Output x, const IntList& axes, bool keep_dims = false);
Output Prod(Output x);
Output Prod(Output x, const IntList& axes, bool keep_dims = false);
Output All(Output x);  // takes and returns bool
Output All(Output x, const IntList& axes, bool keep_dims = false);
Output Any(Output x);
Output Any(Output x, const IntList& axes, bool keep_dims = false);

// Return the position of the first largest (smallest) element along `axis`, which is removed. `output_type` is int32 or
// int64.
Output ArgMax(Output x, int axis, DType output_type = DType::kInt64);
Output ArgMin(Output x, int axis, DType output_type = DType::kInt64);

}  // namespace cohort::ops
