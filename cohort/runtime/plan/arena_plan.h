// Where the values of a plan lie in one block of memory: an offset for each, from when they live. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cohort {

// Every offset and the total are multiples of it.
constexpr size_t kArenaAlignment = 64;

// A value of `bytes` bytes that is there at the times first..last, both included.
struct Lifetime {
  size_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
};

struct ArenaOffsets {
  std::vector<size_t> offsets;  // bytes, one a lifetime
  size_t total = 0;             // bytes of the block
};

// Places the values so that no two that are there at the same time share a byte; values of 0 bytes share with anyone.
// Greedy: one value after the other into the smallest gap that holds it between those that stand already; in several
// orders (by size, by size times duration, by time), each tried again with values that came to lie highest moved to its
// front, of which the best is kept. The same input gives the same output. Quadratic in the number of values.
// Throws InvalidArgumentError for one whose last time is before its first.
ArenaOffsets AssignOffsets(std::span<const Lifetime> lifetimes);

// The most bytes (each value rounded up to the alignment) that are there at one time: no block can be smaller.
size_t MostLiveBytes(std::span<const Lifetime> lifetimes);

}  // namespace cohort
