// ReportError: how a kernel says that it has found a bad value.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

// Sets the step's error word (error_words.h) to check number `check` and `position`, and the word behind it to the
// value there, unless another check has failed before. If several values of one check are bad, the words end with the
// lowest position and its value. `value_at(i)` returns the checked value at position i, an integer.
template <typename ValueAt>
COHORT_KERNEL void ReportError(uint64_t* word, uint32_t check, int64_t position, const ValueAt& value_at) {
  constexpr int kPositionBits = 40;
  const uint64_t mine = (static_cast<uint64_t>(check) << kPositionBits) | static_cast<uint64_t>(position);
  bool is_mine = false;
  uint64_t expected = 0;
  for (;;) {
    const uint64_t found = AtomicCompareAndSet(word, expected, mine);
    is_mine = found == expected;
    if (is_mine || found <= mine || (found >> kPositionBits) != check) break;
    expected = found;
  }
  if (!is_mine) return;
  // Another thread may set the word to a lower position meanwhile. Whichever thread writes a value last has seen the
  // last position: a thread whose position was replaced writes the other value once more.
  for (;;) {
    Fence();
    const uint64_t error = AtomicCompareAndSet(word, 0, 0);  // reads it
    const auto at = static_cast<int64_t>(error & ((uint64_t{1} << kPositionBits) - 1));
    AtomicSet(word + 1, static_cast<uint64_t>(static_cast<int64_t>(value_at(at))));
    Fence();
    if (AtomicCompareAndSet(word, 0, 0) == error) return;
  }
}

}  // namespace cohort::cuda
