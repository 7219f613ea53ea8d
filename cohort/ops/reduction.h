// Reductions over some or all axes. Axes may be negative and must not repeat. Without axes all are reduced;
// with an empty list none is. keep_dims leaves a dimension of 1 for each reduced one. Over no elements Sum is
// 0, Prod 1, Mean NaN, Max the lowest and Min the highest value (-inf, inf), All true, Any false.
#pragma once

#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

Output Sum(Output x, const NodeName& name = "");
Output Sum(Output x, const IntList& axes, bool keep_dims = false, const NodeName& name = "");
Output Mean(Output x, const NodeName& name = "");
Output Mean(Output x, const IntList& axes, bool keep_dims = false, const NodeName& name = "");
Output Max(Output x, const NodeName& name = "");
Output Max(Output x, const IntList& axes, bool keep_dims = false, const NodeName& name = "");
Output Min(Output x, const NodeName& name = "");
Output Min(Output x, const IntList& axes, bool keep_dims = false, const NodeName& name = "");
Output Prod(Output x, const NodeName& name = "");
Output Prod(Output x, const IntList& axes, bool keep_dims = false, const NodeName& name = "");
Output All(Output x, const NodeName& name = "");  // of bool
Output All(Output x, const IntList& axes, bool keep_dims = false, const NodeName& name = "");
Output Any(Output x, const NodeName& name = "");
Output Any(Output x, const IntList& axes, bool keep_dims = false, const NodeName& name = "");

// Position of the first largest (smallest) element along `axis`; the axis goes away.
Output ArgMax(Output x, int axis, DType output_type = DType::kInt64, const NodeName& name = "");
Output ArgMin(Output x, int axis, DType output_type = DType::kInt64, const NodeName& name = "");

}  // namespace cohort::ops
