// Launches of the kernels that copy between regular positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/moves.h"

namespace cohort::cuda {

inline constexpr int kMostCopyDims = 16;

// A dimension of a copy: its size, and the steps in pieces from one index to the next.
struct CopyDim {
  Divider size;
  int64_t from = 0;
  int64_t to = 0;
};

// Pieces of `piece_bytes` (1, 2, 4, 8 or 16) are copied; their addresses and the steps are multiples of that. `dims` go
// from the outermost to the innermost.
struct StridedCopyArgs {
  const void* from = nullptr;
  void* to = nullptr;
  size_t piece_bytes = 1;
  int64_t pieces = 0;  // at least 1: the product of the sizes
  int rank = 0;
  CopyDim dims[kMostCopyDims] = {};
};
void LaunchStridedCopy(Driver& driver, StreamHandle stream, const StridedCopyArgs& args);

// The same, for a target that is contiguous along the last dimension and a source that is contiguous along the one
// before it. The pieces have at most 8 bytes.
void LaunchTransposedCopy(Driver& driver, StreamHandle stream, const StridedCopyArgs& args);

// A box of a larger tensor, whose other elements get one value: Pad and the gradient of a slice.
struct PutSliceArgs {
  static constexpr int kMostDims = 8;
  struct Dim {
    Divider size;        // of the target
    int64_t begin = 0;   // the place of the first element of the source
    int64_t stride = 1;  // from one element of the source to the next, in the target; not 0
    int64_t count = 0;   // elements of the source
    int64_t from = 0;    // step in the source
  };
  const void* from = nullptr;
  const void* fill = nullptr;  // one element in device memory, or null for zero
  void* to = nullptr;
  size_t element_bytes = 1;  // 1, 2, 4 or 8
  int64_t elements = 0;      // of the target, at least 1
  int rank = 0;
  Dim dims[kMostDims] = {};
};
void LaunchPutSlice(Driver& driver, StreamHandle stream, const PutSliceArgs& args);

}  // namespace cohort::cuda
