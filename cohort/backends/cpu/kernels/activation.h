// Loops of activation functions, for kernels that apply an activation to their result. Internal to
// backends/cpu/kernels.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/backends/cpu/kernels/elementwise.h"
#include "cohort/core/dtype.h"

namespace cohort::cpu {

// The loop of one activation function.
struct ActivationLoop {
  UnaryLoop loop = nullptr;  // y = activation(x); x and y may be the same memory
  int64_t cost = 0;          // of one element, in simple operations
};

// Returns the loop that the op's own kernel runs, for an op with the trait Activation. For any other name the loop is
// null.
ActivationLoop FindActivation(const std::string& op, DType dtype);

}  // namespace cohort::cpu
