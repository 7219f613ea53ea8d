// Converts Tensor and Shape to their protobuf messages and back. A caller must include cohort/proto/tensor.pb.h too.
#pragma once

#include "cohort/core/dtype.h"
#include "cohort/core/shape.h"
#include "cohort/core/tensor.h"

namespace cohort {

namespace proto {
class TensorProto;
class TensorShapeProto;
}  // namespace proto

// Replaces the contents of `out`. Unknown dimensions become -1. An unknown rank becomes `unknown_rank`.
void ToProto(const Shape& shape, proto::TensorShapeProto* out);
// Throws InvalidArgumentError if there are more than Shape::kMaxRank dimensions, if a dimension is less than -1, or if
// there are so many elements that the number of their bytes does not fit into an int64.
Shape FromProto(const proto::TensorShapeProto& in);

// Replaces the contents of `out`. A single element is written to the list of its type, so that text dumps show it.
// Several elements are written to tensor_content, and strings to string_val. Throws InvalidArgumentError if the dtype
// is kInvalid or kResource, or if the host cannot read the memory.
void ToProto(const Tensor& tensor, proto::TensorProto* out);
// Returns the tensor, in memory of HostAllocator(). If a list is shorter than the tensor, its last value is repeated;
// an empty list gives zeros. Bools become 0 or 1. Throws InvalidArgumentError if Cohort lacks the dtype, if the shape
// is not fully defined, if tensor_content has the wrong size, or if a list is longer than the tensor.
Tensor FromProto(const proto::TensorProto& in);

}  // namespace cohort
