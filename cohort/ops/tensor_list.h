// Lists of tensors as values (dtype variant, TensorFlow's TensorList): what a loop keeps of its iterations. Changing
// one makes another and costs the same however long it is.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// An empty list for tensors of `dtype` of which `shape` is known.
COHORT_EXPORT Output EmptyTensorList(Graph& graph, DType dtype, const Shape& shape);
// `list` with `tensor` at its end.
COHORT_EXPORT Output TensorListPushBack(Output list, Output tensor);
struct COHORT_EXPORT PoppedTensor {
  Output list;
  Output tensor;
};
// `list` without its last tensor, and that. InvalidArgumentError where the list is empty.
COHORT_EXPORT PoppedTensor TensorListPopBack(Output list, DType dtype, const Shape& shape = Shape::UnknownRank());

}  // namespace cohort::ops
