// Batch normalization of images [batch, rows, columns, channels].
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort::ops {

struct BatchNormOptions {
  float epsilon = 1e-3f;
  // Training: each channel's mean and variance over the batch. Else the given ones.
  bool is_training = true;
  // Training: the returned mean and variance are (1 - factor) * given + factor * the batch's.
  float exponential_avg_factor = 1.0f;
};

struct BatchNorm {
  Output y;
  Output mean;      // float32 [channels]
  Output variance;  // float32 [channels]; of a batch, divided by count - 1
};

// y = scale * (x - mean) / sqrt(variance + epsilon) + offset, with the variance of the batch divided by its count.
// x float32 or bfloat16 [batch, rows, columns, channels]; the others float32 [channels]. Gradients flow from y alone.
BatchNorm FusedBatchNorm(Output x, Output scale, Output offset, Output mean, Output variance,
                         const BatchNormOptions& options = {}, const NodeName& name = "FusedBatchNormV3");

}  // namespace cohort::ops
