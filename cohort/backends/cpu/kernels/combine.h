// The CPU's reductions over several tensors of one shape, for the reduction table (device/reduction.h).
#pragma once

#include "cohort/device/reduction.h"

namespace cohort::cpu {

// See ReductionTable::accumulator_of.
DType AccumulatorOf(DType dtype);
// See ReductionTable::find.
ReduceFn Combiner(ReduceOp op, DType dtype, DType a, DType b, DType out);

}  // namespace cohort::cpu
