// Launches of the kernels for batch normalization and its gradient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// Sizes of a batch, seen as a matrix [points, channels].
struct BatchSizes {
  int64_t points = 0;  // both are at least 1
  int64_t channels = 0;
};

// What the statistics of a batch go to. All have an element for each channel.
struct BatchStatistics {
  float* mean = nullptr;
  float* variance = nullptr;           // the sum of squares divided by the number of points
  float* reported_mean = nullptr;      // (1 - factor) * old_mean + factor * mean
  float* reported_variance = nullptr;  // the same for the variance times `correction`
  const float* old_mean = nullptr;     // null: the factor is 1
  const float* old_variance = nullptr;
  float factor = 1;
  float correction = 1;
};

// The functions below have float32 and bfloat16.

// `scratch`, here and below, has BatchNormBytes bytes.
size_t BatchNormBytes(const BatchSizes& sizes);
void LaunchBatchStatistics(Driver& driver, StreamHandle stream, ElementType type, const BatchSizes& sizes,
                           const void* x, const BatchStatistics& statistics, void* scratch);

// What a normalization reads, with an element for each channel.
struct Normalization {
  const float* mean = nullptr;
  const float* variance = nullptr;
  const float* scale = nullptr;
  const float* offset = nullptr;  // not for gradients
  float epsilon = 0;
};

// y = scale * (x - mean) / sqrt(variance + epsilon) + offset.
void LaunchNormalize(Driver& driver, StreamHandle stream, ElementType type, const BatchSizes& sizes, const void* x,
                     const Normalization& normalization, void* y);

// Writes the gradients by scale and offset for the gradient dy by y.
void LaunchNormalizationSums(Driver& driver, StreamHandle stream, ElementType type, const BatchSizes& sizes,
                             const void* x, const void* dy, const Normalization& normalization, float* d_scale,
                             float* d_offset, void* scratch);

// Writes the gradient by x. `d_scale` and `d_offset` are what LaunchNormalizationSums has written; if they are null,
// mean and variance do not depend on x.
void LaunchNormalizationGradient(Driver& driver, StreamHandle stream, ElementType type, const BatchSizes& sizes,
                                 const void* x, const void* dy, const Normalization& normalization,
                                 const float* d_scale, const float* d_offset, void* dx);

}  // namespace cohort::cuda
