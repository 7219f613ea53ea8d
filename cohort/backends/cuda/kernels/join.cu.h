// The launch of the kernel that joins tensors along an axis, and cuts one into parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/moves.h"

namespace cohort::cuda {

// How many parts one launch serves.
inline constexpr int kMostParts = 96;

// `whole` has `outer` rows of `row` pieces. Part k has `outer` rows, too; its pieces are those from starts[k] to
// starts[k + 1] of each row of the launch's columns, which begin at piece `first` of a row of `whole`.
struct JoinArgs {
  void* whole = nullptr;
  void* parts[kMostParts] = {};
  int64_t starts[kMostParts + 1] = {};
  int count = 0;
  int64_t outer = 0;
  int64_t row = 0;
  int64_t first = 0;
  size_t piece_bytes = 1;
};

// Copies the parts to the whole, or, if `cut`, the whole to the parts. Requires: there is something to copy.
void LaunchJoin(Driver& driver, StreamHandle stream, const JoinArgs& args, bool cut);

}  // namespace cohort::cuda
