// Gradients of control_flow.h's ops. Each changes the node so that it hands out what the backward pass needs, and adds
// a node of the same kind that computes the gradients. Internal to the op modules.
#pragma once

#include <vector>

#include "cohort/graph/gradients.h"

namespace cohort::ops {

// A call of the function's gradient, which is made once for all calls that are differentiated for the same results.
void CallGradient(GradientContext& c);
// A branch on the same condition.
void IfGradient(GradientContext& c);
// A loop of as many iterations, which takes from stacks what the forward iterations put there.
void WhileGradient(GradientContext& c);

// Numbers of the outputs of the node along which a gradient comes.
std::vector<int> OutputsWithGradient(const GradientContext& c);
// Zeros of the shape of `value`; of the variable where it is a handle.
Output ZerosFor(Output value);

}  // namespace cohort::ops
