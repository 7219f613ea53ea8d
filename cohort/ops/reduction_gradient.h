// Gradients of the reductions. Internal to the op modules.
#pragma once

#include "cohort/graph/gradients.h"

namespace cohort::ops {

void SumGradient(GradientContext& c);
void MeanGradient(GradientContext& c);
// The gradient of Max and Min. Equal elements share the gradient equally.
void ExtremumReductionGradient(GradientContext& c);
// The gradient of Prod. It is also right for elements that are zero. Requires: axes and rank are known when the graph
// is built.
void ProdGradient(GradientContext& c);

}  // namespace cohort::ops
