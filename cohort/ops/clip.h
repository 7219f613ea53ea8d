// Clipping gradients by their common norm. Composite functions: they add several nodes.
#pragma once

#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/gradients.h"

namespace cohort::ops {

// sqrt(sum over all tensors of the sum of squares); sparse gradients count their rows as they are, gradients
// that do not exist are left out. A scalar. Throws InvalidArgumentError where none exists.
COHORT_EXPORT Output GlobalNorm(const std::vector<Gradient>& gradients);

struct COHORT_EXPORT ClippedGradients {
  std::vector<Gradient> gradients;  // as many as were given, sparse ones stay sparse
  Output global_norm;
};
// Each gradient times clip_norm / max(global_norm, clip_norm); all NaN when the norm is infinite or NaN.
COHORT_EXPORT ClippedGradients ClipByGlobalNorm(const std::vector<Gradient>& gradients, float clip_norm);
// One tensor scaled down to a norm of at most `clip_norm`.
COHORT_EXPORT Output ClipByNorm(Output x, float clip_norm);

}  // namespace cohort::ops
