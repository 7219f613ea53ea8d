// Launches of the kernels of activation functions and of their gradients.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/activation_functions.h"

namespace cohort::cuda {

// The gradients; the comments say which two operands they have, in the order of the ops.
enum class ActivationGradient : uint8_t {
  kRelu,      // gradient, input or output of the activation
  kRelu6,     // gradient, input or output of the activation
  kElu,       // gradient, output
  kSelu,      // gradient, output
  kSoftplus,  // gradient, input
  kSigmoid,   // output, gradient
  kTanh       // output, gradient
};

// Operands and result have n elements, n at least 1. The result may be the memory of an operand.
void LaunchActivation(Driver& driver, StreamHandle stream, Activation activation, ElementType type, const void* x,
                      void* y, int64_t n);
void LaunchActivationGradient(Driver& driver, StreamHandle stream, ActivationGradient gradient, ElementType type,
                              const void* a, const void* b, void* out, int64_t n);
void LaunchLeakyRelu(Driver& driver, StreamHandle stream, ElementType type, float alpha, const void* x, void* y,
                     int64_t n);
void LaunchLeakyReluGradient(Driver& driver, StreamHandle stream, ElementType type, float alpha, const void* gradient,
                             const void* x, void* out, int64_t n);

}  // namespace cohort::cuda
