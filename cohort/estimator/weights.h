// What losses and metrics have in common: values in float32, and their weights. Internal.
#pragma once

#include <cstdint>

#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::weights {

// Returns the value as float32.
Output AsFloat(Output value);
// Returns the weights of `values` as float32: a scalar, or a value that broadcasts to the shape of `values`. Returns an
// empty Output if all weights are the number 1. Throws InvalidArgumentError for a shape that does not fit `values`; if
// a rank is not known, the step fails with it.
Output For(Output values, const ops::Operand& weights);
// Returns the value as [batch, n], with the batch of `like`, which is [batch, ...]. Another number of elements fails
// the step.
Output Matrix(Output value, int64_t n, Output like);
// Returns numerator / denominator, or 0 if the denominator is 0. Both are float32.
Output DivideOrZero(Output numerator, Output denominator);

}  // namespace cohort::weights
