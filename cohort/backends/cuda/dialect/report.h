// ReportError: how a kernel says that it has found a bad value.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

// Sets the step's error word (error_words.h) to check number `check` and `position`, unless another check has failed
// before. If several values of one check are bad, the word ends with the lowest position.
COHORT_KERNEL void ReportError(uint64_t* word, uint32_t check, int64_t position) {
  constexpr int kPositionBits = 40;
  const uint64_t mine = (static_cast<uint64_t>(check) << kPositionBits) | static_cast<uint64_t>(position);
  uint64_t found = AtomicCompareAndSet(word, 0, mine);
  while (found > mine && (found >> kPositionBits) == check) found = AtomicCompareAndSet(word, found, mine);
}

}  // namespace cohort::cuda
