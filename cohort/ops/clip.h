// Functions that clip gradients by their norm. They are composites: each adds several nodes.
#pragma once

#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/gradients.h"

namespace cohort::ops {

// Returns the scalar sqrt(sum over all tensors of the sum of squares). A sparse gradient counts its rows as they are.
// Gradients that do not exist are left out. Throws InvalidArgumentError if there is no gradient.
COHORT_EXPORT Output GlobalNorm(const std::vector<Gradient>& gradients);

struct COHORT_EXPORT ClippedGradients {
  std::vector<Gradient> gradients;  // as many as were given; sparse ones stay sparse
  Output global_norm;
};
// Returns each gradient times clip_norm / max(global_norm, clip_norm). If the norm is infinite or NaN, all values are
// NaN. Throws as GlobalNorm.
COHORT_EXPORT ClippedGradients ClipByGlobalNorm(const std::vector<Gradient>& gradients, float clip_norm);
// Returns `x`, scaled so that its norm is at most `clip_norm`.
COHORT_EXPORT Output ClipByNorm(Output x, float clip_norm);

}  // namespace cohort::ops
