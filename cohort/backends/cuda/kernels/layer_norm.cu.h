// Launches of the kernels of LayerNorm and its gradient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// A matrix and the statistics of its rows. `scale`, `mean` and `inverse` have elements of the type in which elements
// of x are computed: float32 for bfloat16.
struct NormalizedRows {
  const void* x;
  const void* scale;  // one element for each column
  void* mean;         // one element for each row, as `inverse`
  void* inverse;      // 1 / sqrt(variance + epsilon)
  int64_t rows;
  int64_t columns;
};

// Writes the statistics, and y = scale * (x - mean) * inverse + offset. `y` may be x. Requires: there is a row.
void LaunchLayerNorm(Driver& driver, StreamHandle stream, ElementType type, const NormalizedRows& rows,
                     const void* offset, float epsilon, void* y);

// The two functions below require a row and a column.

// Writes the gradients by scale and offset for the gradient `dy` by y. `scratch` has LayerNormBytes bytes.
size_t LayerNormBytes(int64_t rows, int64_t columns);
void LaunchLayerNormSums(Driver& driver, StreamHandle stream, ElementType type, const NormalizedRows& rows,
                         const void* dy, void* d_scale, void* d_offset, void* scratch);

// Writes the gradient by x. `dx` may be dy or x.
void LaunchLayerNormGradient(Driver& driver, StreamHandle stream, ElementType type, const NormalizedRows& rows,
                             const void* dy, void* dx);

}  // namespace cohort::cuda
