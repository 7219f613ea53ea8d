// The launch of the kernels that sum rows by index.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/row_order.cu.h"

namespace cohort::cuda {

// `data` has one row of `columns` elements for each position. `out` begins as zeros; it has one row for each index, or,
// if `at_first`, one for each position: then the sum of an index is at its first position. The sums of bfloat16 are
// float.
struct SegmentSumArgs {
  RowOrder order;
  int64_t n = 0;  // positions; at least 1
  const void* data = nullptr;
  void* out = nullptr;
  int64_t columns = 0;  // at least 1
  bool at_first = false;
  void* partial = nullptr;  // SegmentSumPartialBytes of device memory
};
int64_t SegmentSumPartialBytes(ElementType type, int64_t n, int64_t columns);
void LaunchSegmentSum(Driver& driver, StreamHandle stream, ElementType type, const SegmentSumArgs& args);

// Fills `rows` with a copy of the `n` indices, but puts the smallest number of their dtype (kInt32 or kInt64) where an
// index has an earlier position. `order` is that of the indices; those that do not count in it are copied, too. Where
// the smallest number itself is an index, it becomes -1.
void LaunchFirstPositions(Driver& driver, StreamHandle stream, ElementType index, const void* indices, int64_t n,
                          int64_t limit, const RowOrder& order, void* rows);

}  // namespace cohort::cuda
