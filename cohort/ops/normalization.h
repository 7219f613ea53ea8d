// Batch normalization of images [batch, rows, columns, channels], and layer normalization.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

struct COHORT_EXPORT BatchNormOptions {
  float epsilon = 1e-3f;
  // If true (training), uses each channel's mean and variance over the batch. Otherwise uses the given ones.
  bool is_training = true;
  // In training, the returned mean and variance are (1 - factor) * given + factor * the batch's.
  float exponential_avg_factor = 1.0f;
};

struct COHORT_EXPORT BatchNorm {
  Output y;
  Output mean;      // float32 [channels]
  Output variance;  // float32 [channels]; that of a batch is divided by count - 1
};

// Returns y = scale * (x - mean) / sqrt(variance + epsilon) + offset. Here the variance of a batch is divided by its
// count. x and y are float32 or bfloat16 [batch, rows, columns, channels]. The others are float32 [channels]. Gradients
// flow only from y. Throws InvalidArgumentError for shapes that do not fit.
COHORT_EXPORT BatchNorm FusedBatchNorm(Output x, Output scale, Output offset, Output mean, Output variance,
                                       const BatchNormOptions& options = {}, const NodeName& name = "FusedBatchNormV3");

// Returns y = scale * (x - mean) / sqrt(variance + epsilon) + offset (Ba, Kiros and Hinton, "Layer Normalization",
// 2016, with Keras's epsilon). Mean and variance are those of one vector along the last axis; the variance is the mean
// of the squared differences from the mean. x and y are float32, float64 or bfloat16 [..., channels]. scale and offset,
// [channels], have the dtype of x, but float32 for bfloat16; y is computed in their dtype and rounded once. Throws
// InvalidArgumentError for shapes and dtypes that do not fit.
COHORT_EXPORT Output LayerNorm(Output x, Output scale, Output offset, float epsilon = 1e-3f,
                               const NodeName& name = "LayerNorm");

}  // namespace cohort::ops
