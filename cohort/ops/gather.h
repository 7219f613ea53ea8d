// Ops whose operands are positions.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// params[..., indices, ...] along `axis`: shape params[:axis] + indices + params[axis+1:]; with batch_dims b
// the first b dimensions of both go together. An index outside [0, dim) is an InvalidArgumentError that names
// it. The gradient of axis 0 is sparse.
Output Gather(Output params, const Operand& indices, int axis = 0, int batch_dims = 0,
              const NodeName& name = "");  // op GatherV2

// on_value at the index, off_value elsewhere, along a new dimension `axis` (-1: the last) of `depth`. An
// index outside [0, depth) gives a row of off_value.
Output OneHot(const Operand& indices, const Operand& depth, const Operand& on_value, const Operand& off_value,
              int axis = -1, const NodeName& name = "");
Output OneHot(Output indices, int depth, DType dtype = DType::kFloat32, const NodeName& name = "");

struct UniqueResult {
  Output y;    // [n] each value once, in the order of first appearance
  Output idx;  // of x's shape: x = y[idx]
};
UniqueResult Unique(Output x, DType out_idx = DType::kInt32, const NodeName& name = "");
struct UniqueCountsResult {
  Output y;
  Output idx;
  Output count;  // [n]
};
UniqueCountsResult UniqueWithCounts(Output x, DType out_idx = DType::kInt32, const NodeName& name = "");

// Positions of the elements that are true (not zero), one row [rank] int64 each, in row-major order.
Output Where(Output condition, const NodeName& name = "");

}  // namespace cohort::ops
