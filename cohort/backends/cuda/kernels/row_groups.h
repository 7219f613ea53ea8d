// How threads divide the rows of a matrix: a group of threads, a warp or a block, computes a row. A file *.cu includes
// it.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/reduce.h"

namespace cohort::cuda {

// The size of a launch in which groups of `group` threads compute rows.
struct RowGroups {
  LaunchSize size;
  uint32_t group;

  // Requires: there is at least one row.
  RowGroups(int64_t rows, int64_t columns) {
    constexpr uint32_t kBlock = 256;
    constexpr int64_t kColumnsForWarp = 1024;  // for more columns a block computes a row
    group = columns <= kColumnsForWarp ? static_cast<uint32_t>(kWarpSize) : kBlock;
    size = SizeFor(rows * group);
    if (size.blocks[0] == 1 && rows * group < kBlock) size.threads[0] = static_cast<uint32_t>(rows) * group;
  }
};

// A row and the thread's part of it: the elements first, first + size, ...
struct RowPart {
  int64_t row;
  int64_t first;
  int64_t size;
};

// Calls body for the thread's part of each row that its group of `group` threads computes.
template <typename Body>
COHORT_KERNEL void ForRows(const Thread& t, int64_t rows, uint32_t group, const Body& body) {
  for (int64_t row = t.first() / group; row < rows; row += t.step() / group) {
    body(RowPart{row, static_cast<int64_t>(t.thread() % group), static_cast<int64_t>(group)});
  }
}

// Returns, on each thread of a group, the values of all its threads, joined. All threads of the group call it.
template <typename A, typename Join>
COHORT_KERNEL A ReduceGroup(const Thread& t, uint32_t size, A value, const Join& join) {
  return size == kWarpSize ? ReduceWarp(t, value, join) : ReduceBlock(t, value, join);
}

}  // namespace cohort::cuda
