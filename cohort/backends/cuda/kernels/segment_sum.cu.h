// The launch of the kernels that sum rows by index.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/row_order.cu.h"

namespace cohort::cuda {

// `data` has one row of `columns` elements for each position; `out` has one for each index, and begins as zeros. The
// sums of bfloat16 are float.
struct SegmentSumArgs {
  RowOrder order;
  int64_t n = 0;  // positions; at least 1
  const void* data = nullptr;
  void* out = nullptr;
  int64_t columns = 0;      // at least 1
  void* partial = nullptr;  // SegmentSumPartialBytes of device memory
};
int64_t SegmentSumPartialBytes(ElementType type, int64_t n, int64_t columns);
void LaunchSegmentSum(Driver& driver, StreamHandle stream, ElementType type, const SegmentSumArgs& args);

}  // namespace cohort::cuda
