// Shape rules that several op families share, and functions that check axes. Internal to the op modules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/graph/op_def.h"

namespace cohort::ops {

// Gives output 0 the shape of input 0.
std::vector<Shape> UnchangedShape(ShapeContext& c);
// The shape rule of ops without outputs.
std::vector<Shape> NoOutputs(ShapeContext& c);
// Gives the op one scalar output.
std::vector<Shape> ScalarShape(ShapeContext& c);
// Gives output 0 the shape to which inputs 0 and 1 broadcast. Throws InvalidArgumentError if they do not broadcast.
std::vector<Shape> BroadcastShape(ShapeContext& c);
// Returns `count` shapes of unknown rank.
std::vector<Shape> UnknownShapes(int count);

// Returns the elements of an int32 or int64 tensor. Throws InvalidArgumentError for another dtype.
std::vector<int64_t> IntegerValues(const Tensor& tensor);
// Returns the only element of an int32 or int64 tensor. Throws InvalidArgumentError, whose message contains `what`, if
// `tensor` has another dtype or another number of elements.
int64_t IntegerScalar(const Tensor& tensor, const char* what);
// Returns `axis`, which is in [-rank, rank), as a number that is not negative. Throws InvalidArgumentError "axis 3 is
// out of range for rank 2" otherwise.
int NormalizeAxis(int64_t axis, int rank, const char* what = "axis");
// Returns one flag for each dimension: true if it is among `axes`. Axes may be negative. Throws InvalidArgumentError
// for an axis that is out of range or given twice.
std::vector<bool> AxisMask(const std::vector<int64_t>& axes, int rank);
// Returns the shape that is left when the marked axes are reduced.
Shape ReducedShape(const Shape& shape, const std::vector<bool>& reduced, bool keep_dims);
// Returns the value of input i as integers, or nullopt if it is not known when the graph is built.
std::optional<std::vector<int64_t>> KnownIntegers(const ShapeContext& c, int i);

// The same for an input that must be a scalar or have one element. Throws InvalidArgumentError, whose message contains
// `what`, if it has another number of elements.
std::optional<int64_t> KnownInteger(const ShapeContext& c, int i, const char* what);

// Returns true if two fully defined shapes broadcast.
bool CanBroadcast(const Shape& a, const Shape& b);
// Returns `wanted` with its unknown dimension filled in, so that it has as many elements as `from` (fully defined).
// Throws InvalidArgumentError if that is impossible.
Shape ResolveReshape(const Shape& from, const Shape& wanted);
// Returns `shape` without the dimensions `axes`, or without all dimensions of 1 if `axes` is empty. An unknown
// dimension in `axes` is taken to be 1. Throws InvalidArgumentError if a dimension in `axes` is not 1.
Shape SqueezedShape(const Shape& shape, const std::vector<int64_t>& axes);
// Returns `sizes`, into which a dimension of size `total` is split. If one size is -1, replaces it by the rest of
// `total`. Throws InvalidArgumentError for a second -1, for another negative size, and if the sizes do not add up.
std::vector<int64_t> ResolveSplit(std::vector<int64_t> sizes, int64_t total);
// Return the shapes of the results of Slice and Pad. `paddings` has the elements of the tensor [rank, 2]. Dimensions of
// `in` may be unknown. Throw InvalidArgumentError for arguments that do not fit.
Shape SlicedShape(const Shape& in, const std::vector<int64_t>& begin, const std::vector<int64_t>& size);
Shape PaddedShape(const Shape& in, const std::vector<int64_t>& paddings);
// Returns `perm` with `rank` added to each negative element. Throws InvalidArgumentError if this is not a permutation
// of `rank` dimensions.
std::vector<int> CheckedPermutation(const std::vector<int64_t>& perm, int rank);
// Returns the number of elements of Range(start, limit, delta): ceil(|limit - start| / |delta|). Requires: the three
// are scalars of the same dtype. Throws InvalidArgumentError for a delta of 0 or of the wrong sign, and for a dtype
// other than int32, int64, float32 and float64.
int64_t RangeLength(const Tensor& start, const Tensor& limit, const Tensor& delta);

}  // namespace cohort::ops
