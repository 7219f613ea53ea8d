// The index arithmetic of StridedSlice, shared by its shape rule and its kernels. Internal to ops/ and
// kernels/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cohort/core/shape.h"
#include "cohort/ops/slice.h"

namespace cohort::ops {

struct StridedSliceSpec {
  // One entry for each dimension of the input: the first element that is taken, the step, and the number of elements
  // (-1: not known).
  std::vector<int64_t> begin;
  std::vector<int64_t> stride;
  std::vector<int64_t> count;
  // The shape of the result, with new dimensions and without removed ones.
  Shape output;
};

// Returns the spec of a StridedSlice. `begin` and `end` are nullopt if they are not known when the graph is built.
// Throws InvalidArgumentError for a stride of 0, too many dimensions, two ellipses, or an index out of range.
StridedSliceSpec ResolveStridedSlice(const Shape& input, const std::optional<std::vector<int64_t>>& begin,
                                     const std::optional<std::vector<int64_t>>& end,
                                     const std::vector<int64_t>& strides, const StridedSliceMasks& masks);

}  // namespace cohort::ops
