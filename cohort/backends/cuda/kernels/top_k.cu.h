// The launch of the kernel that sorts rows.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// `in` is [rows, columns]. The k largest elements of each row go to `values`, and their positions to `indices`, both
// [rows, k], the largest first. Of equal elements that with the lower position comes first; NaN is the largest.
struct TopKArgs {
  const void* in = nullptr;
  void* values = nullptr;
  void* indices = nullptr;
  bool wide_indices = false;  // int64, and not int32
  int64_t rows = 0;           // at least 1
  int64_t columns = 0;        // from 1 to kMostColumns
  int64_t k = 0;              // from 1 to `columns`
  void* scratch = nullptr;    // TopKScratchBytes of device memory

  static constexpr int64_t kMostColumns = int64_t{1} << 31;
};
int64_t TopKScratchBytes(int64_t rows, int64_t columns);
void LaunchTopK(Driver& driver, StreamHandle stream, ElementType type, const TopKArgs& args);

}  // namespace cohort::cuda
