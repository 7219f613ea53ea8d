// oneDNN calls for pools and their gradients, made from shapes alone. Internal to backends/cpu/kernels.
#pragma once

#include "cohort/backends/cpu/kernels/onednn.h"
#include "cohort/ops/window.h"

namespace cohort::cpu {

// The facts on which the oneDNN calls depend.
struct PoolSpec {
  DType dtype = DType::kFloat32;
  ops::WindowAttrs window;
  Shape input;   // [batch, rows, columns, channels]
  Shape output;  // [batch, rows, columns, channels]
  Order order = Order::kChannelsLast;
  bool is_max = true;
  // For max pools only. The forward call writes the position of the largest element of each window, and the gradient
  // call reads it, in bytes(DNNL_ARG_WORKSPACE) bytes.
  bool places = false;
};

// The arguments of Run, in order: input, output [, positions].
OneDnnCall PoolCall(const PoolSpec& spec);
// The arguments of Run, in order: gradient of the output, gradient of the input [, positions].
OneDnnCall PoolGradientCall(const PoolSpec& spec);

}  // namespace cohort::cpu
