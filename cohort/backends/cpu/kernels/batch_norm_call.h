// Batch normalization and its gradient as oneDNN calls, from shapes alone. Internal to backends/cpu/kernels.
#pragma once

#include "cohort/backends/cpu/kernels/onednn.h"

namespace cohort::cpu {

struct BatchNormSpec {
  DType dtype = DType::kFloat32;  // of x and y; all else is float32 [channels]
  Shape shape;                    // [batch, rows, columns, channels]
  Order order = Order::kChannelsLast;
  float epsilon = 0;
  bool given_statistics = false;  // mean and variance are operands; else those of the batch, and results
};

// The arguments of Run in order: x, scale, offset, mean, variance (divided by the count), y.
OneDnnCall BatchNormCall(const BatchNormSpec& spec);
// Gradient of y, x, scale, any [channels] (oneDNN 2.6 asks for the offset and does not read it), mean, variance,
// gradient of x, gradient of scale, gradient of offset.
OneDnnCall BatchNormGradientCall(const BatchNormSpec& spec);

}  // namespace cohort::cpu
