// What the rules and kernels of GatherNd and of the scatters by coordinates have in common. Internal to the op modules
// and the backends.
//
// The last dimension of `indices` holds coordinates: `depth` numbers that select an element, or a slice, of a tensor
// along its first `depth` dimensions.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/shape.h"
#include "cohort/core/tensor.h"

namespace cohort::ops {

// A tensor seen as [rows, columns], where coordinates select rows, and `count` coordinates.
struct NdIndex {
  int depth = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t count = 0;
};

// Returns how `indices` look into a tensor of shape `whole`. Both are fully defined. Throws InvalidArgumentError for
// scalar indices, and for more coordinates than `whole` has dimensions.
NdIndex NdIndexOf(const Shape& indices, const Shape& whole);

// Throws InvalidArgumentError unless `updates` has the shape indices[:-1] + whole[depth:]. Dimensions may be unknown.
void CheckNdUpdates(const Shape& indices, const Shape& updates, const Shape& whole);

// Returns the value of the input `shape` of ScatterNd, an int32 or int64 vector in host memory. Throws
// InvalidArgumentError for a negative dimension.
Shape ShapeOfScatterNd(const Tensor& shape);

// Returns the message about the number `value` at `position` in the flat indices, which is out of range. It has the
// place of the number in `indices`, with one index for each dimension: "indices[1,2,0] = 7 is not in [0, 3)...".
std::string DescribeNdIndex(int64_t position, int64_t value, const Shape& indices, const Shape& whole);

}  // namespace cohort::ops
