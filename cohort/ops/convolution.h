// Two-dimensional convolutions of images [batch, rows, columns, channels].
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

// The options of a convolution. In each array the rows come first, then the columns.
struct COHORT_EXPORT ConvolutionOptions {
  std::array<int64_t, 2> strides{1, 1};
  std::array<int64_t, 2> dilations{1, 1};
  // "SAME": the output has input size / stride positions, rounded up. "VALID": there is no padding. "EXPLICIT":
  // `paddings` zeros are added.
  std::string padding = "VALID";
  std::array<int64_t, 4> paddings{0, 0, 0, 0};  // top, bottom, left, right
};

// Returns the cross-correlation (the filter is not flipped): y[b, r, c, o] = sum of x[b, r * stride + i * dilation -
// top, ..., ch] * filter[i, j, ch, o]. input is [batch, rows, columns, in], filter is [rows, columns, in / groups,
// out]. Both are float32 or bfloat16, and so is the result. Throws InvalidArgumentError for shapes that do not fit.
COHORT_EXPORT Output Conv2D(Output input, Output filter, const ConvolutionOptions& options = {},
                            const NodeName& name = "Conv2D");
// Returns the gradient of Conv2D by its input: the sum of filters that are scaled by the elements of `out_backprop`, of
// shape `input_sizes` [batch, rows, columns, in]. If input_sizes is [rows, columns], the batch is that of out_backprop,
// and `in` is that of the filter, in one group. This is a transposed convolution, TensorFlow's tf.nn.conv2d_transpose.
// `filter` and `options` are those of the Conv2D: filter is [rows, columns, in / groups, out], and out_backprop has the
// shape that Conv2D returns for an input of shape input_sizes. filter and out_backprop are float32 or bfloat16, and so
// is the result. The function has a gradient by both. Throws InvalidArgumentError for shapes that do not fit.
COHORT_EXPORT Output Conv2DBackpropInput(const IntList& input_sizes, Output filter, Output out_backprop,
                                         const ConvolutionOptions& options = {},
                                         const NodeName& name = "Conv2DBackpropInput");
// Returns a convolution in which each channel has filters of its own. filter is [rows, columns, channels, multiplier].
// Output channel c * multiplier + m depends only on channel c of the input. Dtypes and errors are those of Conv2D.
COHORT_EXPORT Output DepthwiseConv2dNative(Output input, Output filter, const ConvolutionOptions& options = {},
                                           const NodeName& name = "DepthwiseConv2dNative");

}  // namespace cohort::ops
