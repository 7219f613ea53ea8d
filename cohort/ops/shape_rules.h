// Shape rules that several op families share, and the reading of axes. Internal to the op modules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/graph/op_def.h"

namespace cohort::ops {

// Output 0 has the shape of input 0.
std::vector<Shape> UnchangedShape(ShapeContext& c);
// One scalar output.
std::vector<Shape> ScalarShape(ShapeContext& c);
// Inputs 0 and 1 broadcast against each other.
std::vector<Shape> BroadcastShape(ShapeContext& c);
// All outputs are of unknown rank (`count` of them).
std::vector<Shape> UnknownShapes(int count);

// The elements of an int32 or int64 tensor. Throws InvalidArgumentError for another dtype.
std::vector<int64_t> IntegerValues(const Tensor& tensor);
// The one element of an int32 or int64 tensor; `what` names it in the error.
int64_t IntegerScalar(const Tensor& tensor, const char* what);
// `axis` in [-rank, rank) made non-negative. Throws InvalidArgumentError "axis 3 is out of range for rank 2".
int NormalizeAxis(int64_t axis, int rank, const char* what = "axis");
// One flag a dimension, from axes that may be negative. Throws InvalidArgumentError for one out of range or
// given twice.
std::vector<bool> AxisMask(const std::vector<int64_t>& axes, int rank);
// Shape left by reducing the marked axes.
Shape ReducedShape(const Shape& shape, const std::vector<bool>& reduced, bool keep_dims);
// The value of input i as integers, where it is known while the graph is built.
std::optional<std::vector<int64_t>> KnownIntegers(const ShapeContext& c, int i);

// Whether two fully defined shapes broadcast.
bool CanBroadcast(const Shape& a, const Shape& b);
// `wanted` with its one unknown dimension filled in so that it has as many elements as `from` (fully
// defined). Throws InvalidArgumentError where that cannot be.
Shape ResolveReshape(const Shape& from, const Shape& wanted);
// `shape` without the dimensions `axes` (all of 1 where there are none). Throws InvalidArgumentError for one
// that is not 1. An unknown dimension counts as 1 where it is named.
Shape SqueezedShape(const Shape& shape, const std::vector<int64_t>& axes);
// Sizes of a split of a dimension of `total`, the one -1 among them filled in. Throws InvalidArgumentError
// where they do not add up.
std::vector<int64_t> ResolveSplit(std::vector<int64_t> sizes, int64_t total);
// Shapes of Slice and Pad; `paddings` is the flat [rank, 2]. Throw InvalidArgumentError for what does not
// fit. Dimensions may be unknown.
Shape SlicedShape(const Shape& in, const std::vector<int64_t>& begin, const std::vector<int64_t>& size);
Shape PaddedShape(const Shape& in, const std::vector<int64_t>& paddings);
// A permutation of `rank` dimensions without negative numbers. Throws InvalidArgumentError for one that is
// none.
std::vector<int> CheckedPermutation(const std::vector<int64_t>& perm, int rank);
// How many elements Range(start, limit, delta) has: ceil(|limit - start| / |delta|). Throws
// InvalidArgumentError for a delta of 0 or of the wrong sign.
int64_t RangeLength(const Tensor& start, const Tensor& limit, const Tensor& delta);

}  // namespace cohort::ops
