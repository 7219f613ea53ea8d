// The CPU's loops for reductions over several tensors of one shape: what device/reduction.h offers for the CPU.
#pragma once

#include "cohort/device/reduction.h"

namespace cohort::cpu {

// See ReductionTable::accumulator_of.
DType AccumulatorOf(DType dtype);
// See ReductionTable::find.
ReduceFn Combiner(ReduceOp op, DType dtype, DType a, DType b, DType out);

}  // namespace cohort::cpu
