// Ops that take and put slices of a tensor by coordinates. `indices` are int32 or int64 of shape [..., depth]: each row
// of `depth` numbers selects tensor[i0, i1, ...], an element or a slice along the first `depth` dimensions. A
// coordinate that is out of range fails the step with InvalidArgumentError, which names it; on GPUs too, where
// TensorFlow drops it. The functions throw InvalidArgumentError for shapes that do not fit.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns params[indices], of the shape indices[:-1] + params[depth:]. `params` has any dtype.
COHORT_EXPORT Output GatherNd(Output params, const Operand& indices, const NodeName& name = "");
// Returns zeros of `shape`, to which `updates` are added where `indices` say: updates with the same coordinates add up,
// in their order. `updates` are numbers, of the shape indices[:-1] + shape[depth:]. `shape` has the dtype of `indices`.
COHORT_EXPORT Output ScatterNd(const Operand& indices, Output updates, const IntList& shape, const NodeName& name = "");

// Return a copy of `tensor`, in which `updates` are put, added or subtracted where `indices` say. If two updates have
// the same coordinates, they follow each other in their order, so that the last one of TensorScatterUpdate stays.
// TensorScatterUpdate takes any dtype, the other two take numbers.
COHORT_EXPORT Output TensorScatterUpdate(Output tensor, const Operand& indices, Output updates,
                                         const NodeName& name = "");
COHORT_EXPORT Output TensorScatterAdd(Output tensor, const Operand& indices, Output updates, const NodeName& name = "");
COHORT_EXPORT Output TensorScatterSub(Output tensor, const Operand& indices, Output updates, const NodeName& name = "");

// Returns a tensor of `output_shape` that has `sparse_values` where `sparse_indices` say, and `default_value`
// elsewhere. `sparse_indices` are [n, rank], [n] for a vector, or [] for one element; `sparse_values` is [n], or one
// value for all. `output_shape` has the dtype of the indices. If `validate_indices` is true, indices that are repeated
// or not in lexicographic order fail the step; else the last one of equal indices counts. As tf.sparse_to_dense.
COHORT_EXPORT Output SparseToDense(const Operand& sparse_indices, const IntList& output_shape, Output sparse_values,
                                   const Operand& default_value = 0, bool validate_indices = true,
                                   const NodeName& name = "");

}  // namespace cohort::ops
