// Launches of the kernels that draw random numbers. The numbers are those of the CPU's kernels: uniform numbers and
// integers have the same bits, normal numbers differ by a few units in the last place.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/philox.h"

namespace cohort::cuda {

enum class Distribution : uint8_t { kUniform, kNormal, kTruncatedNormal };

// Where a launch begins to draw: at `value`, or if `on_card` is not null at what lies there, in the card's memory.
struct RandomStart {
  PhiloxCounter value{};
  const PhiloxCounter* on_card = nullptr;
};

// Draw n numbers, at least 1. The type is a floating-point one.
void LaunchRandom(Driver& driver, StreamHandle stream, Distribution distribution, ElementType type,
                  const RandomStart& start, void* out, int64_t n);
// Sets `out`, in the card's memory, to where the numbers of a stateless op begin. `seed` has two integers of the type,
// int32 or int64, in the card's memory.
void LaunchStartOfSeed(Driver& driver, StreamHandle stream, ElementType type, const void* seed, PhiloxCounter* out);
// out = low + word mod range; range 0 means all values. The type is int32 or int64; for int32 the lower 32 bits of
// `low` and `range` count.
void LaunchRandomIntegers(Driver& driver, StreamHandle stream, ElementType type, const RandomStart& start, uint64_t low,
                          uint64_t range, void* out, int64_t n);
// Row i of `out` is row order[i] of `in`. A row has `row` elements of `element_bytes` bytes: 1, 2, 4 or 8. `order` lies
// in device memory.
void LaunchShuffle(Driver& driver, StreamHandle stream, size_t element_bytes, const void* in, const int64_t* order,
                   int64_t rows, int64_t row, void* out);

}  // namespace cohort::cuda
