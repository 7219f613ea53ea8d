// The launch of the kernel that makes row numbers of coordinates.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/gather.cu.h"

namespace cohort::cuda {

// `indices` has `count` rows of `depth` coordinates into a tensor with the dimensions `dims`. rows[i] becomes the
// number of the row that coordinates i select. If one of them is out of range, it becomes `bad_row`, and the first bad
// number is reported.
struct RowNumberArgs {
  static constexpr int kMostCoordinates = 8;
  const void* indices = nullptr;
  int64_t* rows = nullptr;
  int64_t count = 0;  // at least 1
  int depth = 0;
  int64_t dims[kMostCoordinates] = {};
  int64_t bad_row = 0;
  IndexCheck check;
};
// `index` is kInt32 or kInt64.
void LaunchRowNumbers(Driver& driver, StreamHandle stream, ElementType index, const RowNumberArgs& args);

}  // namespace cohort::cuda
