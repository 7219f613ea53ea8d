// Reads and assigns the values of a session's variables. Internal to keras/.
#pragma once

#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {

// Returns copies of the values.
std::vector<Tensor> ReadVariables(Session& session, const std::vector<ops::Variable>& variables);
// Returns true if the first `count` values have the dtypes and shapes of the first `count` variables.
bool ValuesFit(const std::vector<Tensor>& values, const std::vector<ops::Variable>& variables, size_t count);
// Assigns one value to each variable. Requires: the values fit. Adds nodes to the graph.
void AssignVariables(Session& session, const std::vector<ops::Variable>& variables, const std::vector<Tensor>& values);

}  // namespace cohort::keras
