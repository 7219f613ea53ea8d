// Between Tensor / Shape and their messages. Whoever calls these includes cohort/proto/tensor.pb.h too.
#pragma once

#include "cohort/core/dtype.h"
#include "cohort/core/shape.h"
#include "cohort/core/tensor.h"

namespace cohort {

namespace proto {
class TensorProto;
class TensorShapeProto;
}  // namespace proto

// Clears `out` first. Unknown dimensions become -1, an unknown rank `unknown_rank`.
void ToProto(const Shape& shape, proto::TensorShapeProto* out);
// Throws InvalidArgumentError for more than Shape::kMaxRank dimensions, a dimension below -1, or so many
// elements that their bytes would not fit an int64.
Shape FromProto(const proto::TensorShapeProto& in);

// Clears `out` first. One element goes to its typed list (so that text dumps can be read), more to
// tensor_content, strings to string_val. Throws InvalidArgumentError for a tensor without elements that can
// be written: kInvalid, kResource, or memory that the host cannot read.
void ToProto(const Tensor& tensor, proto::TensorProto* out);
// The tensor, from HostAllocator(). A list shorter than the tensor repeats its last value, an empty one gives
// zeros; bools are normalised to 0 and 1. Throws InvalidArgumentError for a dtype that we lack, a shape that
// is not fully defined, tensor_content of the wrong size or a list longer than the tensor.
Tensor FromProto(const proto::TensorProto& in);

}  // namespace cohort
