// Launches of kernels that bring images and filters into the form in which a library wants them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// to[columns, rows] = the transpose of from[rows, columns]. `element_bytes` is 1, 2, 4 or 8. Requires: both sizes are
// at least 1.
void LaunchTranspose(Driver& driver, StreamHandle stream, size_t element_bytes, int64_t rows, int64_t columns,
                     const void* from, void* to);

// Sizes of a copy between images [batch, rows, columns, channels] that differ in rows and columns.
struct ImageCopy {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t from_rows = 0;
  int64_t from_columns = 0;
  int64_t to_rows = 0;
  int64_t to_columns = 0;
  // The point [row, column] of the result is the point [row - top, column - left] of the source, and 0 if there is
  // none.
  int64_t top = 0;
  int64_t left = 0;
};
// Requires: the result is not empty.
void LaunchImageCopy(Driver& driver, StreamHandle stream, size_t element_bytes, const ImageCopy& copy, const void* from,
                     void* to);

}  // namespace cohort::cuda
