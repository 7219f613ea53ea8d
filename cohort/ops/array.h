// Ops that read or change the shape, the dtype or the identity of a tensor, without arithmetic. They take every dtype.
// All throw InvalidArgumentError for shapes that do not fit: when the node is added if the shapes are known, else when
// the step runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

COHORT_EXPORT Output Identity(Output input, const std::string& name = "");
// Returns one output for each input, with the same values. No output is there before all inputs are.
COHORT_EXPORT std::vector<Output> IdentityN(const std::vector<Output>& inputs);
// Returns the input. No gradient flows back through the node.
COHORT_EXPORT Output StopGradient(Output input);

// Return the shape as a vector [rank], the number of elements, and the rank. The last two are scalars. `out_type` is
// int32 or int64. The rank is int32.
COHORT_EXPORT Output ShapeOf(Output input, DType out_type = DType::kInt32);
COHORT_EXPORT Output Size(Output input, DType out_type = DType::kInt32);
COHORT_EXPORT Output Rank(Output input);

// Returns the same elements in another shape. One dimension of `shape` may be -1: it follows from the number of
// elements.
COHORT_EXPORT Output Reshape(Output input, const IntList& shape);
// Returns the tensor with a new dimension of 1 at `axis`. A negative axis counts from the end.
COHORT_EXPORT Output ExpandDims(Output input, int axis);
// Returns the tensor without the dimensions `axes`, which must be 1. If `axes` is empty, removes all dimensions of 1.
COHORT_EXPORT Output Squeeze(Output input, const std::vector<int64_t>& axes = {});
// Converts the elements to `dtype`. A float that becomes an integer loses its fraction. If it does not fit (or is NaN),
// int32 and int64 get the lowest number, and uint8 gets the low bits of the int32. An integer that becomes a narrower
// one keeps its low bits. A bool is true if the element is not zero.
COHORT_EXPORT Output Cast(Output input, DType dtype);
COHORT_EXPORT Output BroadcastTo(Output input, const IntList& shape);

}  // namespace cohort::ops
