// oneDNN calls for convolutions and their gradients, made from shapes alone. Internal to backends/cpu/kernels.
#pragma once

#include <string>

#include "cohort/backends/cpu/kernels/onednn.h"
#include "cohort/ops/window.h"

namespace cohort::cpu {

// The facts on which the oneDNN calls depend.
struct ConvolutionSpec {
  DType dtype = DType::kFloat32;
  ops::WindowAttrs window;
  Shape input;   // [batch, rows, columns, in]
  Shape filter;  // [rows, columns, in / groups, out]; for a depthwise convolution [rows, columns, 1, channels *
                 // multiplier]
  Shape output;  // [batch, rows, columns, out]
  Order input_order = Order::kChannelsLast;
  Order output_order = Order::kChannelsLast;
  bool bias = false;       // forward: a bias is added; filter gradient: the bias's gradient is a result
  std::string activation;  // applied last; CanEndIn must return true for it; "": none
};

// The arguments of Run, in order: input, filter, [bias,] output.
OneDnnCall ConvolutionCall(const ConvolutionSpec& spec);
// Returns true if oneDNN applies the activation like the op of that name. NaN is an exception: it becomes infinite.
bool CanEndIn(const std::string& activation);
// The arguments of Run, in order: gradient of the output, filter, gradient of the input.
OneDnnCall InputGradientCall(const ConvolutionSpec& spec);
// The arguments of Run, in order: input, gradient of the output, gradient of the filter [, gradient of the bias].
OneDnnCall FilterGradientCall(const ConvolutionSpec& spec);

}  // namespace cohort::cpu
