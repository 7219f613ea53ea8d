// Launches of the kernels that look up by index.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// Where a kernel reports an index that is out of range (error_words.h).
struct IndexCheck {
  uint64_t* word = nullptr;
  uint32_t number = 0;
};

// `params` is seen as [batch, outer, dim, inner] pieces, `indices` as [batch, n], and `out` as [batch, outer, n,
// inner]. A row whose index is out of range becomes zero, and is reported.
struct GatherArgs {
  const void* params = nullptr;
  const void* indices = nullptr;
  void* out = nullptr;
  size_t piece_bytes = 1;
  int64_t batch = 1, outer = 1, dim = 0, inner = 1, n = 0;
  IndexCheck check;
};
// `index` is kInt32 or kInt64. Requires: `out` has elements.
void LaunchGather(Driver& driver, StreamHandle stream, ElementType index, const GatherArgs& args);

// Which indices are good: those in [0, rows), those below `rows`, or those in [0, rows) and the smallest number of
// their dtype, which stands for no row (_SumRepeatedRows).
enum class IndexRange : uint8_t { kRows, kRowsOrNegative, kRowsOrNone };

// Reports the first of `n` indices that is not good. Requires: n is at least 1.
void LaunchIndexCheck(Driver& driver, StreamHandle stream, ElementType index, const void* indices, int64_t n,
                      int64_t rows, IndexRange range, const IndexCheck& check);

// `indices` is seen as [outer, inner], `out` as [outer, depth, inner]. `on` and `off` are single elements in device
// memory.
struct OneHotArgs {
  const void* indices = nullptr;
  const void* on = nullptr;
  const void* off = nullptr;
  void* out = nullptr;
  size_t element_bytes = 1;
  int64_t depth = 0, inner = 1;
  int64_t elements = 0;  // of `out`, at least 1
};
// `index` is kInt32, kInt64 or kUint8.
void LaunchOneHot(Driver& driver, StreamHandle stream, ElementType index, const OneHotArgs& args);

}  // namespace cohort::cuda
