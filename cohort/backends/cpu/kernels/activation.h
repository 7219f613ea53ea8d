// The loops of activation functions, for kernels that apply one to their result. Internal to backends/cpu/kernels.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/backends/cpu/kernels/elementwise.h"
#include "cohort/core/dtype.h"

namespace cohort::cpu {

struct ActivationLoop {
  UnaryLoop loop = nullptr;  // y = activation(x); x and y may be the same memory
  int64_t cost = 0;          // of an element, in simple operations
};

// Returns the loop of an op with the trait Activation, which is what its own kernel runs. The loop is null for any
// other name.
ActivationLoop FindActivation(const std::string& op, DType dtype);

}  // namespace cohort::cpu
