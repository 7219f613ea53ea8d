// Two-dimensional convolutions of images [batch, rows, columns, channels].
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

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
                            const std::string& name = "Conv2D");
// Returns a convolution in which each channel has filters of its own. filter is [rows, columns, channels, multiplier].
// Output channel c * multiplier + m depends only on channel c of the input. Dtypes and errors are those of Conv2D.
COHORT_EXPORT Output DepthwiseConv2dNative(Output input, Output filter, const ConvolutionOptions& options = {},
                                           const std::string& name = "DepthwiseConv2dNative");

}  // namespace cohort::ops
