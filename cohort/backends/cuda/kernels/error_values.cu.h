// The launch that fetches an error word (error_words.h).
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// Copies the word and the value behind it to out[0] and out[1]. `out` may be pinned memory of the host.
void LaunchFetchError(Driver& driver, StreamHandle stream, const uint64_t* word, uint64_t* out);

}  // namespace cohort::cuda
