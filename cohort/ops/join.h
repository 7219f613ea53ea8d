// Ops that join tensors along an axis, split them, and repeat them. They take every dtype. All throw
// InvalidArgumentError for shapes or axes that do not fit: when the node is added if the shapes are known, else when
// the step runs.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"

namespace cohort::ops {

// Joins tensors along `axis`. All other dimensions must agree. If there is one value, returns it and adds no node.
COHORT_EXPORT Output Concat(const std::vector<Output>& values, int axis);  // op ConcatV2
// Returns `num_split` equal parts along `axis`.
COHORT_EXPORT std::vector<Output> Split(Output value, int axis, int num_split);
// Returns parts of the given sizes along `axis`. One size may be -1: it gets the rest.
COHORT_EXPORT std::vector<Output> SplitV(Output value, const std::vector<int64_t>& sizes, int axis);
// Joins tensors of one shape along a new dimension `axis`. Unpack is the reverse.
COHORT_EXPORT Output Pack(const std::vector<Output>& values, int axis = 0);
COHORT_EXPORT std::vector<Output> Unpack(Output value, int num, int axis = 0);
// Returns the tensor with dimension i repeated multiples[i] times.
COHORT_EXPORT Output Tile(Output input, const IntList& multiples);

}  // namespace cohort::ops
