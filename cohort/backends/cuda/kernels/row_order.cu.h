// The order of rows: positions in a tensor of indices, sorted by their index. Kernels that add to rows or update them
// go through this order, so that each row is changed by one thread, in the order of the positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// A key is (index << bits) | position, and kNoRow for a position whose row does not count.
struct RowOrder {
  static constexpr uint64_t kNoRow = ~uint64_t{0};
  uint64_t* keys = nullptr;  // `size` keys in device memory, in rising order: those of rows that count, and then kNoRow
  int bits = 0;
  int64_t size = 0;  // a power of two
};

// Returns how many keys an order of n positions has. Requires: n is from 1 to 2^62.
RowOrder RowOrderFor(int64_t n);
// Returns whether a launch can sort them (at most 2^41 positions), and the keys of so many rows fit into 64 bits.
bool RowOrderFits(const RowOrder& order, int64_t rows);

// Fills order.keys with the positions 0 to n - 1 of `indices` (kInt32 or kInt64). Those that are not in [0, rows) do
// not count.
void LaunchRowOrder(Driver& driver, StreamHandle stream, ElementType index, const void* indices, int64_t n,
                    int64_t rows, const RowOrder& order);

}  // namespace cohort::cuda
