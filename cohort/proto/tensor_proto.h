// Converts Tensor and Shape to their protobuf messages and back. A caller must include cohort/proto/tensor.pb.h too.
#pragma once

#include <cstdint>

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

// How much memory the tensors of one message may take. A short list of values stands for a large tensor in which the
// last value is repeated, so a few bytes can claim any size. The reader of a message makes one budget for all its
// tensors. A tensor of up to 64 times the bytes of its own message is free. All tensors together may have 256 MiB more.
class TensorBudget {
 public:
  // Throws InvalidArgumentError if a tensor of `tensor_bytes` is too large for a TensorProto of `message_bytes`.
  void Take(uint64_t tensor_bytes, uint64_t message_bytes, DType dtype, const Shape& shape);

 private:
  uint64_t left_ = uint64_t{256} << 20;
};

// Replaces the contents of `out`. A single element is written to the list of its type, so that text dumps show it.
// Several elements are written to tensor_content, and strings to string_val. Throws InvalidArgumentError if the dtype
// is kInvalid or kResource, or if the host cannot read the memory.
void ToProto(const Tensor& tensor, proto::TensorProto* out);
// Returns the tensor, in memory of HostAllocator(). If a list is shorter than the tensor, its last value is repeated;
// an empty list gives zeros. Bools become 0 or 1. Throws InvalidArgumentError if Cohort lacks the dtype, if the shape
// is not fully defined, if tensor_content has the wrong size, if a list is longer than the tensor, or if the tensor
// does not fit into the budget.
Tensor FromProto(const proto::TensorProto& in, TensorBudget& budget);
// The same with a budget of its own.
Tensor FromProto(const proto::TensorProto& in);

}  // namespace cohort
