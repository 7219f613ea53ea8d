// Adds the gradients of one value. Internal to graph/.
#pragma once

#include <vector>

#include "cohort/graph/gradients.h"

namespace cohort {

// Returns the sum of `parts`. Adds the parts of each device on that device, and then these sums on the device of the
// first part. The result is sparse if all parts are sparse, else dense. Requires: `parts` is not empty, and all parts
// exist.
Gradient SumGradients(const std::vector<Gradient>& parts);

}  // namespace cohort
