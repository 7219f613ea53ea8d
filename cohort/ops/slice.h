// Parts of a tensor, and padding.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

// `size[i]` elements from `begin[i]` along each dimension; a size of -1 means all that follow.
Output Slice(Output input, const IntList& begin, const IntList& size, const NodeName& name = "");

// Python's input[begin:end:stride, ...]. Bit i of a mask speaks of position i: begin_mask and end_mask ignore
// that bound, ellipsis_mask stands for "...", new_axis_mask puts in a dimension of 1, shrink_axis_mask takes
// the one element at begin and drops the dimension.
struct StridedSliceMasks {
  int64_t begin_mask = 0;
  int64_t end_mask = 0;
  int64_t ellipsis_mask = 0;
  int64_t new_axis_mask = 0;
  int64_t shrink_axis_mask = 0;
};
Output StridedSlice(Output input, const IntList& begin, const IntList& end, const IntList& strides,
                    const StridedSliceMasks& masks = {}, const NodeName& name = "");

// Zeros (or `value`, a scalar: op PadV2) before and after, one pair a dimension.
Output Pad(Output input, const std::vector<std::pair<int64_t, int64_t>>& paddings, const NodeName& name = "");
Output Pad(Output input, const std::vector<std::pair<int64_t, int64_t>>& paddings, const Operand& value,
           const NodeName& name = "");

}  // namespace cohort::ops
