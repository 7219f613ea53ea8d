// ElementwiseKernel: a kernel that can be part of a chain because it works element by element. Internal to
// backends/cpu.
#pragma once

#include <cstdint>

#include "cohort/device/kernel.h"

namespace cohort::cpu {

// The loops of a kernel over plain memory. Element i of the result depends on element i of each operand alone, or on an
// operand that is a single element. An operand and the result may be the same memory.
struct ElementwiseLoops {
  using Unary = void (*)(const void* x, void* out, int64_t n);
  using Binary = void (*)(const void* a, const void* b, void* out, int64_t n);
  Unary unary = nullptr;          // one operand
  Binary both = nullptr;          // two operands of n elements
  Binary right_scalar = nullptr;  // the right one is a single element
  Binary left_scalar = nullptr;   // the left one is a single element
};

// A kernel whose loops may run as a part of a chain (see elementwise_chain.h).
class ElementwiseKernel : public OpKernel {
 public:
  // Returns null if the kernel refuses some values of its operands: then it cannot be part of a chain.
  virtual const ElementwiseLoops* loops() const = 0;
};

}  // namespace cohort::cpu
