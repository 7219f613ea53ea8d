// Gradients of the ops of control_flow.h. Each changes the node so that it returns the values that the backward pass
// needs, and adds a node of the same kind that computes the gradients. Internal to the op modules.
#pragma once

#include <vector>

#include "cohort/graph/gradients.h"

namespace cohort::ops {

// Adds a call of the function's gradient. The gradient is made once for all calls that are differentiated for the same
// results.
void CallGradient(GradientContext& c);
// Adds a branch on the same condition.
void IfGradient(GradientContext& c);
// Adds a loop with as many iterations. It takes values from stacks, where the forward iterations have put them.
void WhileGradient(GradientContext& c);

// Returns the numbers of the node's outputs that have a gradient.
std::vector<int> OutputsWithGradient(const GradientContext& c);
// Returns zeros of the shape of `value`. If `value` is a variable's handle, returns zeros of the variable's shape.
Output ZerosFor(Output value);

}  // namespace cohort::ops
