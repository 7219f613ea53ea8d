// Ops that look at or change the shape, the dtype or the identity of a tensor, without arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

Output Identity(Output input, const NodeName& name = "");
// One output an input; all are there before any of them is.
std::vector<Output> IdentityN(const std::vector<Output>& inputs, const NodeName& name = "");
// The input; no gradient flows back through it.
Output StopGradient(Output input, const NodeName& name = "");

// The shape as a vector [rank], the number of elements and the rank (scalars); `out_type` int32 or int64.
Output ShapeOf(Output input, DType out_type = DType::kInt32, const NodeName& name = "");
Output Size(Output input, DType out_type = DType::kInt32, const NodeName& name = "");
Output Rank(Output input, const NodeName& name = "");

// The same elements in another shape; one dimension may be -1.
Output Reshape(Output input, const IntList& shape, const NodeName& name = "");
// A dimension of 1 put in at `axis` (negative: from the end).
Output ExpandDims(Output input, int axis, const NodeName& name = "");
// Without the dimensions of 1 named, or without all of them.
Output Squeeze(Output input, const std::vector<int64_t>& axes = {}, const NodeName& name = "");
// Converts the elements. Floats to integers lose their fraction; what does not fit (NaN too) gives the lowest number,
// uint8 the low bits of the int32. Integers to narrower ones keep the low bits. To bool: not zero.
Output Cast(Output input, DType dtype, const NodeName& name = "");
Output BroadcastTo(Output input, const IntList& shape, const NodeName& name = "");

}  // namespace cohort::ops
