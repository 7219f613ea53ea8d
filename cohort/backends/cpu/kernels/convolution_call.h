// Convolutions and their gradients as oneDNN calls, from shapes alone. Internal to backends/cpu/kernels.
#pragma once

#include <string>

#include "cohort/backends/cpu/kernels/onednn.h"
#include "cohort/ops/window.h"

namespace cohort::cpu {

struct ConvolutionSpec {
  DType dtype = DType::kFloat32;
  ops::WindowAttrs window;
  Shape input;   // [batch, rows, columns, in]
  Shape filter;  // [rows, columns, in / groups, out]; for a depthwise convolution [rows, columns, 1, channels *
                 // multiplier]
  Shape output;  // [batch, rows, columns, out]
  Order input_order = Order::kChannelsLast;
  Order output_order = Order::kChannelsLast;
  bool bias = false;       // forward: added to the result; filter gradient: its gradient is a second result
  std::string activation;  // applied last, one that CanEndIn knows; "" for none
};

// The arguments of Run in order: input, filter, [bias,] output.
OneDnnCall ConvolutionCall(const ConvolutionSpec& spec);
// Whether oneDNN applies the activation as the op of that name does, but for NaN, which becomes infinite.
bool CanEndIn(const std::string& activation);
// Gradient of the output, filter, gradient of the input.
OneDnnCall InputGradientCall(const ConvolutionSpec& spec);
// Input, gradient of the output, gradient of the filter [, gradient of the bias].
OneDnnCall FilterGradientCall(const ConvolutionSpec& spec);

}  // namespace cohort::cpu
