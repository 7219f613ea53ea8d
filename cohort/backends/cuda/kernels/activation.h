// The activation functions and their gradients by the names of their ops. kernels/activation.cc defines the functions.
#pragma once

#include <optional>
#include <string>

#include "cohort/backends/cuda/kernels/activated.h"
#include "cohort/device/kernel.h"

namespace cohort::cuda {

// Returns the activation that is the op of this name; "" means none. Throws InvalidArgumentError for another name.
Activation FindActivation(const std::string& op);

// Returns the gradient that is the op of this name, or nothing.
std::optional<ActivationGradient> FindActivationGradient(const std::string& op);

// Returns the activation that the kernel applies to the elements of its first input (passes/move_activations.h).
Activation InputActivation(const KernelConstruction& c);

// Returns the gradient that the kernel of a node with the attributes `gradient` and `activation` applies to its result,
// without the place of its operand. Throws InvalidArgumentError if there are no such functions.
AppliedGradient GradientToApply(const KernelConstruction& c);
// Throws InvalidArgumentError, as the gradient's own kernel does, if its operands have different shapes.
void CheckActivated(const Shape& activated, const Shape& gradient);

}  // namespace cohort::cuda
