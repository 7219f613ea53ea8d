// Reductions over some or all axes. Axes may be negative and must not repeat. Without axes all are reduced;
// with an empty list none is. keep_dims leaves a dimension of 1 for each reduced one. Over no elements Sum is
// 0, Prod 1, Mean NaN, Max the lowest and Min the highest value (-inf, inf), All true, Any false.
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
COHORT_EXPORT Output All(Output x);  // of bool
COHORT_EXPORT Output All(Output x, const IntList& axes, bool keep_dims = false);
COHORT_EXPORT Output Any(Output x);
COHORT_EXPORT Output Any(Output x, const IntList& axes, bool keep_dims = false);

// Position of the first largest (smallest) element along `axis`; the axis goes away.
COHORT_EXPORT Output ArgMax(Output x, int axis, DType output_type = DType::kInt64);
COHORT_EXPORT Output ArgMin(Output x, int axis, DType output_type = DType::kInt64);

}  // namespace cohort::ops
