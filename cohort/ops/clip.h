// Clipping gradients by their common norm. Composite functions: they add several nodes.
#pragma once

#include <vector>

#include "cohort/graph/gradients.h"

namespace cohort::ops {

// sqrt(sum over all tensors of the sum of squares); sparse gradients count their rows as they are, gradients
// that do not exist are left out. A scalar. Throws InvalidArgumentError where none exists.
Output GlobalNorm(const std::vector<Gradient>& gradients, const NodeName& name = "");

struct ClippedGradients {
  std::vector<Gradient> gradients;  // as many as were given, sparse ones stay sparse
  Output global_norm;
};
// `name` is the name of each clipped gradient's product.
// Each gradient times clip_norm / max(global_norm, clip_norm); all NaN when the norm is infinite or NaN.
ClippedGradients ClipByGlobalNorm(const std::vector<Gradient>& gradients, float clip_norm, const NodeName& name = "");
// One tensor scaled down to a norm of at most `clip_norm`.
Output ClipByNorm(Output x, float clip_norm, const NodeName& name = "");

}  // namespace cohort::ops
