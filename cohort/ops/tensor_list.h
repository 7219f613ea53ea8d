// Lists of tensors as values (dtype variant, TensorFlow's TensorList). A loop keeps values of its iterations in them. A
// list never changes: an operation makes a new list, and costs the same however long the list is.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Returns an empty list for tensors of `dtype`. `shape` has the dimensions that are known of them.
COHORT_EXPORT Output EmptyTensorList(Graph& graph, DType dtype, const Shape& shape);
// Returns `list` with `tensor` added at its end.
COHORT_EXPORT Output TensorListPushBack(Output list, Output tensor);
struct COHORT_EXPORT PoppedTensor {
  Output list;
  Output tensor;
};
// Returns `list` without its last tensor, and that tensor. If the list is empty, the step fails with
// InvalidArgumentError.
COHORT_EXPORT PoppedTensor TensorListPopBack(Output list, DType dtype, const Shape& shape = Shape::UnknownRank());

}  // namespace cohort::ops
