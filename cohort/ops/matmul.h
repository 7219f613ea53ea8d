// Matrix products of bfloat16, float32 or float64. Throw InvalidArgumentError for shapes that do not fit.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Returns the product [m,k] x [k,n] -> [m,n]. A transposed operand is given as [k,m] or [n,k].
COHORT_EXPORT Output MatMul(Output a, Output b, bool transpose_a = false, bool transpose_b = false);
// Returns the products [...,m,k] x [...,k,n] -> [...,m,n]. The leading dimensions broadcast. The op is BatchMatMulV2.
// If adj_x or adj_y is true, the last two dimensions of that operand are swapped.
COHORT_EXPORT Output BatchMatMul(Output x, Output y, bool adj_x = false, bool adj_y = false);

}  // namespace cohort::ops
