// Ops that read or change the shape or the dtype of a tensor, or pass it on, without arithmetic. They take every dtype,
// except that Cast takes numbers and bools. The functions throw InvalidArgumentError for shapes that do not fit, if the
// shapes are known when the node is added. If they are known only in the step, the step fails with this error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

COHORT_EXPORT Output Identity(Output input, const NodeName& name = "");
// Returns one output for each input, with the same values. The outputs become available only when all inputs are.
COHORT_EXPORT std::vector<Output> IdentityN(const std::vector<Output>& inputs, const NodeName& name = "");
// Returns the input. No gradient flows back through the node.
COHORT_EXPORT Output StopGradient(Output input, const NodeName& name = "");

// ShapeOf returns the shape as a vector [rank], Size the number of elements as a scalar, Rank the rank as an int32
// scalar. `out_type` is int32 or int64.
COHORT_EXPORT Output ShapeOf(Output input, DType out_type = DType::kInt32, const NodeName& name = "");
COHORT_EXPORT Output Size(Output input, DType out_type = DType::kInt32, const NodeName& name = "");
COHORT_EXPORT Output Rank(Output input, const NodeName& name = "");

// Returns the same elements in another shape. At most one dimension of `shape` may be -1: it is computed from the
// number of elements.
COHORT_EXPORT Output Reshape(Output input, const IntList& shape, const NodeName& name = "");
// Returns the tensor with a new dimension of 1 at `axis`. A negative axis counts from the end.
COHORT_EXPORT Output ExpandDims(Output input, int axis, const NodeName& name = "");
// Returns the tensor without the dimensions `axes`, which must be 1. If `axes` is empty, removes all dimensions of 1.
COHORT_EXPORT Output Squeeze(Output input, const std::vector<int64_t>& axes = {}, const NodeName& name = "");
// Converts the elements to `dtype`. A float that becomes an integer loses its fraction. A float that does not fit into
// int32 or int64, or is NaN, becomes the lowest number. A float becomes uint8 by way of int32: 300.0 gives 44, NaN
// gives 0. An integer that is converted to a narrower integer keeps its low bits. A bool is true if the element is not
// zero. If the input has this dtype already, adds no node and returns the input.
COHORT_EXPORT Output Cast(Output input, DType dtype, const NodeName& name = "");
// Returns the tensor repeated along dimensions, so that it has the shape `shape`. The dimensions of the two shapes are
// compared from the last one on: each dimension of the tensor must be 1 or equal to the dimension of `shape`.
COHORT_EXPORT Output BroadcastTo(Output input, const IntList& shape, const NodeName& name = "");

}  // namespace cohort::ops
