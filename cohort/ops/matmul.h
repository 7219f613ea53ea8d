// Matrix products.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::ops {

// [m,k] x [k,n] -> [m,n]; a transposed operand is given as [k,m] or [n,k].
Output MatMul(Output a, Output b, bool transpose_a = false, bool transpose_b = false, const NodeName& name = "");
// [...,m,k] x [...,k,n] -> [...,m,n]; the leading dimensions broadcast. Op BatchMatMulV2.
Output BatchMatMul(Output x, Output y, bool adj_x = false, bool adj_y = false, const NodeName& name = "");

}  // namespace cohort::ops
