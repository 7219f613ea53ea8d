// Gradients of ops that broadcast. The gradient of the broadcast value is summed to the shape of an operand. Nodes that
// would do nothing, by the static shapes, are not added. Internal to the op modules.
#pragma once

#include "cohort/graph/gradients.h"

namespace cohort::ops {

// Returns `value` in the shape of `like`. Requires: both have the same number of elements.
Output ReshapeLike(Output value, Output like);
// Returns `grad`, summed to the shape of `target`. Requires: `target` broadcasts to the shape of `grad`.
Output SumToShapeOf(Output grad, Output target);
// Sets the gradients of inputs 0 and 1, which broadcast against each other. gx and gy have the broadcast shape. An
// Output that is not valid is not set.
void SetBroadcastGradients(GradientContext& c, Output gx, Output gy);

}  // namespace cohort::ops
