// Launches of the kernels for convolutions whose filters have one input channel: depthwise convolutions, and
// convolutions of images with one channel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/activated.h"

namespace cohort::cuda {

// Sizes of such a convolution. Images are [batch, rows, columns, channels]. The filter is [rows, columns, channels,
// multiplier]. Output channel c * multiplier + m is that of input channel c. In pairs the element [0] is for the rows
// and [1] for the columns.
struct DepthwiseSizes {
  int64_t batch = 0;  // all sizes are at least 1
  int64_t in[2] = {0, 0};
  int64_t channels = 0;
  int64_t filter[2] = {0, 0};
  int64_t multiplier = 1;
  int64_t out[2] = {0, 0};
  int64_t strides[2] = {1, 1};
  int64_t dilations[2] = {1, 1};
  int64_t before[2] = {0, 0};  // the padding before the image

  COHORT_KERNEL int64_t out_channels() const { return channels * multiplier; }
  COHORT_KERNEL int64_t taps() const { return filter[0] * filter[1]; }
};

// y = activation(convolution of of_x(x) + bias). Null means no bias. `type` is float32 or bfloat16. Throws
// UnimplementedError for an output of more than 2^32 elements.
void LaunchDepthwise(Driver& driver, StreamHandle stream, ElementType type, const DepthwiseSizes& sizes, const void* x,
                     const void* filter, const void* bias, Activation activation, void* y,
                     Activation of_x = Activation::kNone);

// dx = the gradient by x, for the gradient dy by the output, and then `applied`. Throws UnimplementedError for an input
// of more than 2^32 elements.
void LaunchDepthwiseInputGradient(Driver& driver, StreamHandle stream, ElementType type, const DepthwiseSizes& sizes,
                                  const void* filter, const void* dy, void* dx, const AppliedGradient& applied = {});

// df = the gradient by the filter of the convolution of of_x(x). `scratch` has DepthwiseFilterGradientBytes bytes.
size_t DepthwiseFilterGradientBytes(const DepthwiseSizes& sizes);
void LaunchDepthwiseFilterGradient(Driver& driver, StreamHandle stream, ElementType type, const DepthwiseSizes& sizes,
                                   const void* x, const void* dy, void* df, void* scratch,
                                   Activation of_x = Activation::kNone);

}  // namespace cohort::cuda
