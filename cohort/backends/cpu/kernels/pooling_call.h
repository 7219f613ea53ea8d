// Pools and their gradients as oneDNN calls, from shapes alone. Internal to backends/cpu/kernels.
#pragma once

#include "cohort/backends/cpu/kernels/onednn.h"
#include "cohort/ops/window.h"

namespace cohort::cpu {

struct PoolSpec {
  DType dtype = DType::kFloat32;
  ops::WindowAttrs window;
  Shape input;   // [batch, rows, columns, channels]
  Shape output;  // likewise
  Order order = Order::kChannelsLast;
  bool is_max = true;
  // Max only: the forward call writes, and the gradient call reads, the place of the largest element of each window, in
  // bytes(DNNL_ARG_WORKSPACE) bytes.
  bool places = false;
};

// The arguments of Run in order: input, output [, places].
OneDnnCall PoolCall(const PoolSpec& spec);
// Gradient of the output, gradient of the input [, places].
OneDnnCall PoolGradientCall(const PoolSpec& spec);

}  // namespace cohort::cpu
