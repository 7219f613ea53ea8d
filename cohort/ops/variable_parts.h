// PartsOf(): what holds the values of variables. Internal: optimizers, strategies and training steps use it.
#pragma once

#include <vector>

#include "cohort/ops/variables.h"

namespace cohort::ops {

// Returns the variables in order, and for each one that has parts() its parts instead of it.
std::vector<Variable> PartsOf(const std::vector<Variable>& variables);

}  // namespace cohort::ops
