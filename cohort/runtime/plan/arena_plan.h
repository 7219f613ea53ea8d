// Places the values of a plan in one block of memory. It gives an offset to each value, computed from the time in which
// the value exists. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cohort {

// All offsets and the total are multiples of this number.
constexpr size_t kArenaAlignment = 64;

// A value of `bytes` bytes that exists from time `first` to time `last`, both included. The time is any number that
// grows during a step. ArenaPlanner takes the index of the node that runs.
struct Lifetime {
  size_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
};

// The result of AssignOffsets.
struct ArenaOffsets {
  std::vector<size_t> offsets;  // in bytes, one for each lifetime
  size_t total = 0;             // size of the block in bytes
};

// Returns offsets such that no two values that exist at the same time share a byte. (A value of 0 bytes may have any
// offset.) The method is greedy: it puts one value after another into the smallest gap that is large enough. It tries
// several orders of the values: by size, by size times duration, by duration, by first time, by last time. It also
// improves each order a limited number of times: it moves a value that lies at the end of the block to the front of the
// order, and places all values again. It returns the best result. Equal arguments give equal results. The time is
// quadratic in the number of values. Throws InvalidArgumentError if the last time of a value is before its first.
ArenaOffsets AssignOffsets(std::span<const Lifetime> lifetimes);

// Returns the largest number of bytes that exist at one time, with each size rounded up to kArenaAlignment. No block
// can be smaller than this.
size_t MostLiveBytes(std::span<const Lifetime> lifetimes);

}  // namespace cohort
