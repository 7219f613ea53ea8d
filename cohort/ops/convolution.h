// Two-dimensional convolutions of images [batch, rows, columns, channels].
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort::ops {

// Rows first, then columns.
struct ConvolutionOptions {
  std::array<int64_t, 2> strides{1, 1};
  std::array<int64_t, 2> dilations{1, 1};
  // "SAME": as many positions as input elements (divided by the stride, rounded up); "VALID": no padding; "EXPLICIT":
  // `paddings` zeros are added.
  std::string padding = "VALID";
  std::array<int64_t, 4> paddings{0, 0, 0, 0};  // top, bottom, left, right
};

// Cross-correlation (the filter is not flipped): y[b, r, c, o] = sum of x[b, r * stride + i * dilation - top, ..., ch]
// * filter[i, j, ch, o]. input [batch, rows, columns, in], filter [rows, columns, in / groups, out]; float32 or
// bfloat16. Throws InvalidArgumentError for shapes that do not fit.
Output Conv2D(Output input, Output filter, const ConvolutionOptions& options = {}, const NodeName& name = "Conv2D");
// Each channel has filters of its own: filter [rows, columns, channels, multiplier], output channel c * multiplier + m
// sees channel c of the input alone.
Output DepthwiseConv2dNative(Output input, Output filter, const ConvolutionOptions& options = {},
                             const NodeName& name = "DepthwiseConv2dNative");

}  // namespace cohort::ops
