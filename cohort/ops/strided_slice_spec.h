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
  // One entry a dimension of the input: the first element taken, the step, and how many (-1: not known).
  std::vector<int64_t> begin;
  std::vector<int64_t> stride;
  std::vector<int64_t> count;
  // Shape of the result, with new dimensions and without dropped ones.
  Shape output;
};

// `begin` and `end` are nullopt where they are not known while the graph is built; `length` is their common
// length. Throws InvalidArgumentError for a stride of 0, too many dimensions, two ellipses or an index out of
// range.
StridedSliceSpec ResolveStridedSlice(const Shape& input, const std::optional<std::vector<int64_t>>& begin,
                                     const std::optional<std::vector<int64_t>>& end,
                                     const std::vector<int64_t>& strides, const StridedSliceMasks& masks);

}  // namespace cohort::ops
