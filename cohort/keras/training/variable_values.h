// Values of variables of a session, for files. Internal to keras/.
#pragma once

#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {

// Copies.
std::vector<Tensor> ReadVariables(Session& session, const std::vector<ops::Variable>& variables);
// Whether the first `count` values have the dtypes and shapes of the first `count` variables.
bool ValuesFit(const std::vector<Tensor>& values, const std::vector<ops::Variable>& variables, size_t count);
// `values`: one a variable, that fits. Adds nodes to the graph.
void AssignVariables(Session& session, const std::vector<ops::Variable>& variables, const std::vector<Tensor>& values);

}  // namespace cohort::keras
