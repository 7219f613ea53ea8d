// Launches of the kernels that change a whole variable.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

enum class VariableUpdate : uint8_t { kAdd, kSub };

// `error` is the error word of the step, or null. If it is not 0 when the kernel runs, `out` gets the old value. `old`
// and `out` may be the same memory.
struct UpdateArgs {
  const void* old;
  const void* value;
  void* out;
  int64_t n;  // elements; at least 1
  const uint64_t* error;
};

// out = old + value, or old - value. The types are all numbers.
void LaunchVariableUpdate(Driver& driver, StreamHandle stream, VariableUpdate update, ElementType type,
                          const UpdateArgs& args);
// out = value. `n` counts bytes.
void LaunchAssign(Driver& driver, StreamHandle stream, const UpdateArgs& args);

}  // namespace cohort::cuda
