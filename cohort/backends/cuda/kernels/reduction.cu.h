// Launches of the kernels of reductions over axes.
//
// A reduction has `outputs` results, and each joins `count` elements of the input. ReductionShape says where the
// elements lie. If few threads would have much work, the elements of each result are cut into segments: a first kernel
// joins those of each segment, and a second one the results of the segments. How they are cut depends on the shape
// alone, so the same input gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/broadcast_dims.h"

namespace cohort::cuda {

enum class ReductionOp : uint8_t {
  // of numbers
  kSum,
  kMean,  // of integers: computed in int64 and rounded towards zero
  kMax,
  kMin,
  kProd,
  // of truth values
  kAll,
  kAny
};

// Dimensions of the input, from the outermost to the innermost, with the elements from one index to the next.
struct ReductionDims {
  int rank = 0;
  Divider dims[kMostDims];
  int64_t strides[kMostDims] = {};
};

struct ReductionShape {
  int64_t outputs = 1;
  int64_t count = 1;   // elements of the input that one result joins; may be 0
  ReductionDims kept;  // their indices, in order, number the results
  ReductionDims reduced;
  bool inner_reduced = false;  // whether neighbours in memory belong to one result
};

// How the work is divided.
struct ReductionWork {
  enum class Group { kThread, kWarp, kBlock };  // the threads that join a segment
  Group group = Group::kThread;
  int64_t segments = 1;
  int64_t segment = 1;  // elements of a segment; the last one may have fewer
};
ReductionWork DivideReduction(const ReductionShape& shape);
// Returns the bytes of scratch memory that the launch needs: 0 if there is one segment.
size_t ReductionBytes(const ReductionShape& shape);

// Requires: there is at least one output. `scratch` has ReductionBytes(shape) bytes.
void LaunchReduction(Driver& driver, StreamHandle stream, ReductionOp op, ElementType type, const ReductionShape& shape,
                     const void* in, void* out, void* scratch);

}  // namespace cohort::cuda
