// The launch that fetches the values at which checks have failed (error_words.h).
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// The values that some checks of one step have looked at.
struct CheckedValues {
  static constexpr int kMost = 8;
  struct Values {
    uint32_t check;
    bool is_int64;  // else int32
    const void* data;
    int64_t n;
  };
  int count = 0;
  Values values[kMost];
};

// Copies the word to out[0], and to out[1] the value at the position that the word names, if the word is of one of the
// checks.
void LaunchFetchError(Driver& driver, StreamHandle stream, const uint64_t* word, const CheckedValues& checked,
                      uint64_t* out);

}  // namespace cohort::cuda
