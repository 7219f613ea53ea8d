// The element loops of reductions over several tensors of one shape: out = a op b.
#pragma once

#include <cstdint>

#include "cohort/core/dtype.h"
#include "cohort/device/communicator.h"

namespace cohort::cpu {

// out[i] = a[i] op b[i] for n elements; for MEAN (a[i] + b[i]) / divisor, of integers towards zero. Integers wrap
// around; MIN and MAX hand on a NaN. `out` may be `a` or `b`.
using CombineFn = void (*)(const void* a, const void* b, void* out, int64_t n, int64_t divisor);

// What sums of `dtype` are kept in: float32 for bfloat16, else the dtype.
DType AccumulatorOf(DType dtype);

// For elements of `dtype`, where each operand and the result may instead be of AccumulatorOf(dtype). Throws
// UnimplementedError for what are no numbers.
CombineFn Combiner(ReduceOp op, DType dtype, DType a, DType b, DType out);

}  // namespace cohort::cpu
