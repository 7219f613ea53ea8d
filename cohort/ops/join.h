// Putting tensors together and taking them apart along an axis, and repeating them.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

// All but dimension `axis` must agree. One value is returned as it is.
Output Concat(const std::vector<Output>& values, int axis, const NodeName& name = "");  // op ConcatV2
// `num_split` equal parts.
std::vector<Output> Split(Output value, int axis, int num_split, const NodeName& name = "");
// Parts of the given sizes, of which one may be -1 (what is left).
std::vector<Output> SplitV(Output value, const std::vector<int64_t>& sizes, int axis, const NodeName& name = "");
// Tensors of one shape along a new dimension `axis`, and the reverse.
Output Pack(const std::vector<Output>& values, int axis = 0, const NodeName& name = "");
std::vector<Output> Unpack(Output value, int num, int axis = 0, const NodeName& name = "");
// Repeats dimension i multiples[i] times.
Output Tile(Output input, const IntList& multiples, const NodeName& name = "");

}  // namespace cohort::ops
