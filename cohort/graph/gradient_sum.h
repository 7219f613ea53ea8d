// The sum of gradients of one value, dense and sparse. Internal to graph/.
#pragma once

#include <vector>

#include "cohort/graph/gradients.h"

namespace cohort {

// Adds what stands on one device there first, then the devices' sums on the device of the first part. All
// sparse: a sparse one of all rows; mixed: dense. `parts` is not empty and all exist.
Gradient SumGradients(const std::vector<Gradient>& parts);

}  // namespace cohort
