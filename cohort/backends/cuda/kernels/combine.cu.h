// Launches of the kernel that joins the elements of several tensors, for collectives.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

enum class CombineOp : uint8_t { kSum, kProduct, kMin, kMax, kMean };

// One launch reads all inputs and writes the same result to all outputs. An output may be the memory of an input.
struct CombineArgs {
  static constexpr int kMost = 64;  // inputs, and outputs
  const void* in[kMost];
  void* out[kMost];
  int inputs = 0;       // at least 1
  int outputs = 0;      // at least 1
  int64_t n = 0;        // elements of each; at least 1
  int64_t divisor = 1;  // only for kMean: the result is the sum divided by it
};

// Joins the inputs in their order: (in[0] op in[1]) op in[2] ... bfloat16 is joined as float32 and rounded once. The
// type is a number.
void LaunchCombine(Driver& driver, StreamHandle stream, CombineOp op, ElementType type, const CombineArgs& args);

}  // namespace cohort::cuda
