// Ops that order elements along an axis. Equal elements keep their order: the one with the lower position comes first.
// NaN counts as larger than all numbers: it comes first in falling order and last in rising order. The values are
// numbers of any dtype.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

struct COHORT_EXPORT TopKResult {
  Output values;   // [..., k], the largest first
  Output indices;  // [..., k], int32 or int64: positions along the last axis
};
// Returns the k largest elements of each row along the last axis of `input`, and where they are (op TopKV2). k is a
// scalar of int32 or int64. The result is always in falling order; `sorted` is TensorFlow's attribute, which lets other
// programs that load the graph leave the order open. `index_type` is int32 or int64. Throws InvalidArgumentError for a
// scalar input and for a k that is not in [0, n], where n is the length of a row: at once if both are known, else the
// step fails with it. The gradient goes to the elements that were taken.
COHORT_EXPORT TopKResult TopK(Output input, const Operand& k = 1, bool sorted = true, DType index_type = DType::kInt32,
                              const NodeName& name = "");

// Return the elements along `axis` in rising or falling order, and the positions that order them, as int32. `direction`
// is "ASCENDING" or "DESCENDING". Both add a TopKV2 node, nodes of ReverseV2 for rising order, and
// nodes of Transpose if `axis` is not the last one. Throw InvalidArgumentError for another direction, for an axis that
// is out of range, and for an axis that is not -1 if the rank is unknown.
COHORT_EXPORT Output Sort(Output values, int axis = -1, const std::string& direction = "ASCENDING",
                          const NodeName& name = "");
COHORT_EXPORT Output ArgSort(Output values, int axis = -1, const std::string& direction = "ASCENDING",
                             const NodeName& name = "");

}  // namespace cohort::ops
