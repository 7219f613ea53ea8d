// Lists of tensors as values (dtype variant, TensorFlow's TensorList): what a loop keeps of its iterations. Changing
// one makes another and costs the same however long it is.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::ops {

// An empty list for tensors of `dtype` of which `shape` is known.
Output EmptyTensorList(Graph& graph, DType dtype, const Shape& shape, const NodeName& name = "");
// `list` with `tensor` at its end.
Output TensorListPushBack(Output list, Output tensor, const NodeName& name = "");
struct PoppedTensor {
  Output list;
  Output tensor;
};
// `list` without its last tensor, and that. InvalidArgumentError where the list is empty.
PoppedTensor TensorListPopBack(Output list, DType dtype, const Shape& shape = Shape::UnknownRank(),
                               const NodeName& name = "");

}  // namespace cohort::ops
