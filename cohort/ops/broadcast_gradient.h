// Gradients of ops that broadcast: what flowed to the broadcast value, summed back to the shape of an
// operand. Nodes are left out where static shapes show that they would do nothing. Internal to the op
// modules.
#pragma once

#include "cohort/graph/gradients.h"

namespace cohort::ops {

// `value` in the shape of `like`, which has as many elements.
Output ReshapeLike(Output value, Output like);
// `grad`, whose shape `target` broadcasts to, summed to the shape of `target`.
Output SumToShapeOf(Output grad, Output target);
// Sets the gradients of inputs 0 and 1, which broadcast against each other, from gradients of the broadcast
// shape. One that is not valid is not set.
void SetBroadcastGradients(GradientContext& c, Output gx, Output gy);

}  // namespace cohort::ops
