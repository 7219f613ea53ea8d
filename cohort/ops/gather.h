// Ops that work with positions: look-ups, one-hot vectors, unique values. Indices are int32 or int64; OneHot also takes
// uint8.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns params[..., indices, ...] along `axis`, with the shape params[:axis] + indices[b:] + params[axis+1:]. b is
// `batch_dims`: params and indices have the same first b dimensions, and each index looks up only in its own part of
// params. An index outside [0, dim) fails the step with InvalidArgumentError, which names the index. If `axis` is 0,
// the gradient of `params` is sparse.
COHORT_EXPORT Output Gather(Output params, const Operand& indices, int axis = 0, int batch_dims = 0,
                            const NodeName& name = "");  // op GatherV2

// Replaces each index by a vector of size `depth`, which has on_value at the index and off_value at the other
// positions. `axis` is the place of the new dimension (-1: the last). For an index outside [0, depth), all elements are
// off_value.
COHORT_EXPORT Output OneHot(const Operand& indices, const Operand& depth, const Operand& on_value,
                            const Operand& off_value, int axis = -1, const NodeName& name = "");
COHORT_EXPORT Output OneHot(Output indices, int depth, DType dtype = DType::kFloat32, const NodeName& name = "");

struct COHORT_EXPORT UniqueResult {
  Output y;    // [n], each value once, in the order of first appearance
  Output idx;  // has x's shape: x = y[idx]
};
COHORT_EXPORT UniqueResult Unique(Output x, DType out_idx = DType::kInt32, const NodeName& name = "");
struct COHORT_EXPORT UniqueCountsResult {
  Output y;
  Output idx;
  Output count;  // [n]
};
COHORT_EXPORT UniqueCountsResult UniqueWithCounts(Output x, DType out_idx = DType::kInt32, const NodeName& name = "");

// Returns the positions of the elements that are true (not zero), in row-major order: int64 [n, rank].
COHORT_EXPORT Output Where(Output condition, const NodeName& name = "");

}  // namespace cohort::ops
