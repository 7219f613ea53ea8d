// oneDNN calls for batch normalization and its gradient, made from shapes alone. Internal to backends/cpu/kernels.
#pragma once

#include "cohort/backends/cpu/kernels/onednn.h"

namespace cohort::cpu {

// The facts on which the oneDNN call depends.
struct BatchNormSpec {
  DType dtype = DType::kFloat32;  // of x and y; all other arguments are float32 [channels]
  Shape shape;                    // [batch, rows, columns, channels]
  Order order = Order::kChannelsLast;
  float epsilon = 0;
  bool given_statistics = false;  // true: mean and variance are operands; false: they are computed and are results
};

// The arguments of Run, in order: x, scale, offset, mean, variance (the sum of squares divided by the count), y.
OneDnnCall BatchNormCall(const BatchNormSpec& spec);
// The arguments of Run, in order: gradient of y, x, scale, a tensor [channels] (oneDNN 2.6 requires the offset but does
// not read it), mean, variance, gradient of x, gradient of scale, gradient of offset.
OneDnnCall BatchNormGradientCall(const BatchNormSpec& spec);

}  // namespace cohort::cpu
