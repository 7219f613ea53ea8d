// Launches of the kernels that go along an axis: running sums and products, and the place of an extreme
// element.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// A tensor seen as [outer, n, inner]; the axis is the one in the middle. All are at least 1.
struct AxisView {
  int64_t outer = 1;
  int64_t n = 1;
  int64_t inner = 1;
};

enum class ScanOp : uint8_t { kSum, kProduct };
struct ScanArgs {
  const void* x = nullptr;
  void* out = nullptr;
  AxisView view;
  bool exclusive = false;
  bool reverse = false;
};
// The types are all numbers.
void LaunchScan(Driver& driver, StreamHandle stream, ScanOp op, ElementType type, const ScanArgs& args);

// Puts the index of the first extreme element of each line into `out`, which has [outer, inner] elements of type
// `index` (kInt32 or kInt64). NaN is never extreme. The types of x are all numbers and bool.
struct ArgExtremumArgs {
  const void* x = nullptr;
  void* out = nullptr;
  AxisView view;
  bool largest = true;
};
void LaunchArgExtremum(Driver& driver, StreamHandle stream, ElementType type, ElementType index,
                       const ArgExtremumArgs& args);

}  // namespace cohort::cuda
