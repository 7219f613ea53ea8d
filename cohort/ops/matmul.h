// Matrix products.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// [m,k] x [k,n] -> [m,n]; a transposed operand is given as [k,m] or [n,k].
COHORT_EXPORT Output MatMul(Output a, Output b, bool transpose_a = false, bool transpose_b = false);
// [...,m,k] x [...,k,n] -> [...,m,n]; the leading dimensions broadcast. Op BatchMatMulV2.
COHORT_EXPORT Output BatchMatMul(Output x, Output y, bool adj_x = false, bool adj_y = false);

}  // namespace cohort::ops
