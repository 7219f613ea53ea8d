// Launches of the kernels for pools and their gradients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/activated.h"

namespace cohort::cuda {

// Sizes of a pool. Images are [batch, rows, columns, channels]. In pairs the element [0] is for the rows and [1] for
// the columns.
struct PoolSizes {
  int64_t batch = 0;  // all sizes are at least 1
  int64_t channels = 0;
  int64_t in[2] = {0, 0};
  int64_t out[2] = {0, 0};
  int64_t window[2] = {1, 1};
  int64_t strides[2] = {1, 1};
  int64_t before[2] = {0, 0};  // the padding before the image

  int64_t in_count() const { return batch * in[0] * in[1] * channels; }
  int64_t out_count() const { return batch * out[0] * out[1] * channels; }
  // A place says which element of its window was the largest. It has so many bytes, 1 or 8.
  size_t place_bytes() const { return window[0] * window[1] <= 256 ? 1 : 8; }
};

// The functions below have float32 and bfloat16. The largest element of a window is the first of them; a NaN counts as
// the largest of all.

// y = the largest elements of of_x(x). `places`, if not null, gets the place of each.
void LaunchMaxPool(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes, const void* x,
                   void* y, void* places, Activation of_x = Activation::kNone);
// dx = the gradient by x of a max pool, for the gradient by y, which is dy after `applied`.
void LaunchMaxPoolGradient(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes,
                           const void* places, const void* dy, void* dx, const AppliedGradient& applied = {});
// picked = the elements of `from` (of the shape of x) at the places of the largest elements of x.
void LaunchPickLargest(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes, const void* x,
                       const void* from, void* picked);
// y = the means of the elements of each window of of_x(x) that are inside the image.
void LaunchAvgPool(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes, const void* x,
                   void* y, Activation of_x = Activation::kNone);
// dx = the gradient by x of an average pool, and then `applied`.
void LaunchAvgPoolGradient(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes,
                           const void* dy, void* dx, const AppliedGradient& applied = {});

}  // namespace cohort::cuda
