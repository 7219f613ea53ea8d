// Putting tensors together and taking them apart along an axis, and repeating them.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

// All but dimension `axis` must agree. One value is returned as it is.
COHORT_EXPORT Output Concat(const std::vector<Output>& values, int axis);  // op ConcatV2
// `num_split` equal parts.
COHORT_EXPORT std::vector<Output> Split(Output value, int axis, int num_split);
// Parts of the given sizes, of which one may be -1 (what is left).
COHORT_EXPORT std::vector<Output> SplitV(Output value, const std::vector<int64_t>& sizes, int axis);
// Tensors of one shape along a new dimension `axis`, and the reverse.
COHORT_EXPORT Output Pack(const std::vector<Output>& values, int axis = 0);
COHORT_EXPORT std::vector<Output> Unpack(Output value, int num, int axis = 0);
// Repeats dimension i multiples[i] times.
COHORT_EXPORT Output Tile(Output input, const IntList& multiples);

}  // namespace cohort::ops
