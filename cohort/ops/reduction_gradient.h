// Gradients of the reductions. Internal to the op modules.
#pragma once

#include "cohort/graph/gradients.h"

namespace cohort::ops {

void SumGradient(GradientContext& c);
void MeanGradient(GradientContext& c);
// Of Max and Min: elements that tie share the gradient equally.
void ExtremumReductionGradient(GradientContext& c);
// Right also where elements are zero. Needs axes that are known while the graph is built, and a known rank.
void ProdGradient(GradientContext& c);

}  // namespace cohort::ops
