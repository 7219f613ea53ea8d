// FindActivation: the activation functions by the names of their ops. kernels/activation.cc defines it.
#pragma once

#include <string>

#include "cohort/backends/cuda/kernels/activation_functions.h"

namespace cohort::cuda {

// Returns the activation that is the op of this name; "" means none. Throws InvalidArgumentError for another name.
Activation FindActivation(const std::string& op);

}  // namespace cohort::cuda
