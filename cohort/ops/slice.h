// Ops that take parts of a tensor, and ops that pad it. They take every dtype. All throw InvalidArgumentError for
// positions that do not fit: when the node is added if they are known, else when the step runs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

// Returns `size[i]` elements from `begin[i]` on, along each dimension i. A size of -1 means all that follow.
COHORT_EXPORT Output Slice(Output input, const IntList& begin, const IntList& size);

// The masks of StridedSlice, which is Python's input[begin:end:stride, ...]. Bit i of a mask belongs to position i.
// begin_mask and end_mask ignore that bound. ellipsis_mask means "...". new_axis_mask adds a dimension of 1.
// shrink_axis_mask takes the one element at begin and removes the dimension.
struct COHORT_EXPORT StridedSliceMasks {
  int64_t begin_mask = 0;
  int64_t end_mask = 0;
  int64_t ellipsis_mask = 0;
  int64_t new_axis_mask = 0;
  int64_t shrink_axis_mask = 0;
};
COHORT_EXPORT Output StridedSlice(Output input, const IntList& begin, const IntList& end, const IntList& strides,
                                  const StridedSliceMasks& masks = {});

// Adds zeros, or `value` (a scalar; op PadV2), before and after. `paddings` has one pair for each dimension.
COHORT_EXPORT Output Pad(Output input, const std::vector<std::pair<int64_t, int64_t>>& paddings);
COHORT_EXPORT Output Pad(Output input, const std::vector<std::pair<int64_t, int64_t>>& paddings, const Operand& value);

}  // namespace cohort::ops
