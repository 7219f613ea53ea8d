// Ops that look at or change the shape, the dtype or the identity of a tensor, without arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

COHORT_EXPORT Output Identity(Output input, const std::string& name = "");
// One output an input; all are there before any of them is.
COHORT_EXPORT std::vector<Output> IdentityN(const std::vector<Output>& inputs);
// The input; no gradient flows back through it.
COHORT_EXPORT Output StopGradient(Output input);

// The shape as a vector [rank], the number of elements and the rank (scalars); `out_type` int32 or int64.
COHORT_EXPORT Output ShapeOf(Output input, DType out_type = DType::kInt32);
COHORT_EXPORT Output Size(Output input, DType out_type = DType::kInt32);
COHORT_EXPORT Output Rank(Output input);

// The same elements in another shape; one dimension may be -1.
COHORT_EXPORT Output Reshape(Output input, const IntList& shape);
// A dimension of 1 put in at `axis` (negative: from the end).
COHORT_EXPORT Output ExpandDims(Output input, int axis);
// Without the dimensions of 1 named, or without all of them.
COHORT_EXPORT Output Squeeze(Output input, const std::vector<int64_t>& axes = {});
// Converts the elements. Floats to integers lose their fraction; what does not fit (NaN too) gives the lowest number,
// uint8 the low bits of the int32. Integers to narrower ones keep the low bits. To bool: not zero.
COHORT_EXPORT Output Cast(Output input, DType dtype);
COHORT_EXPORT Output BroadcastTo(Output input, const IntList& shape);

}  // namespace cohort::ops
