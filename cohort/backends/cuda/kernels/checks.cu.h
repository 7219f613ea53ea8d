// Launches of kernels that look for values that an op does not allow.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

enum class ValueCheck : uint8_t { kNotZero, kNotNegative };

// Reports the first element of `values`, integers, that is 0 or negative, under the number `check` (error_words.h).
// Requires: n is at least 1.
void LaunchValueCheck(Driver& driver, StreamHandle stream, ValueCheck what, ElementType type, const void* values,
                      int64_t n, uint64_t* word, uint32_t check);

}  // namespace cohort::cuda
