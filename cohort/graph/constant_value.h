// What is known of values while a graph is built: constants and what follows from them and from static
// shapes.
#pragma once

#include <optional>

#include "cohort/graph/graph.h"
#include "cohort/graph/op_def.h"

namespace cohort {

// The value where it is a Const (also behind Identity) or a small int32/int64 scalar or vector that follows
// from constants and static shapes through Shape, Size, Rank, Pack, ConcatV2, Cast, Identity, StridedSlice,
// Range, Add, AddV2, Sub, Mul; else nothing.
std::optional<Tensor> ConstantValue(const Output& value);

// `value`, an int32 or int64 vector, read as a shape: elements that are unknown (or -1) as unknown
// dimensions, UnknownRank where even its length is unknown. Throws InvalidArgumentError for a value that is
// no shape: another rank or dtype, more than Shape::kMaxRank elements, an element below -1.
Shape ConstantValueAsShape(const Output& value);
// The same of a value that is there. Throws as above.
Shape TensorAsShape(const Tensor& value);

// Attributes of a function's argument that is a handle: of one variable, in lists of one.
inline constexpr char kHandleDTypes[] = "_handle_dtypes";
inline constexpr char kHandleShapes[] = "_handle_shapes";

// The VarHandleOp (or other source) behind a resource handle, through Identity nodes.
const Node& HandleSource(const Output& handle);
// Shape and dtype of the variable behind a handle; UnknownRank and kInvalid where the source does not say.
Shape HandleShape(const Output& handle);
DType HandleDType(const Output& handle);

// The facts of a node that is being added to a graph.
class StaticFacts final : public InputFacts {
 public:
  // `inputs` must outlive the object.
  explicit StaticFacts(const std::vector<Output>& inputs) : inputs_(inputs) {}
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  const Shape& shape(int i) const override { return At(i).shape(); }
  DType dtype(int i) const override { return At(i).dtype(); }
  std::optional<Tensor> value(int i) const override { return ConstantValue(At(i)); }
  Shape value_as_shape(int i) const override { return ConstantValueAsShape(At(i)); }
  Shape handle_shape(int i) const override { return HandleShape(At(i)); }
  DType handle_dtype(int i) const override { return HandleDType(At(i)); }

 private:
  const Output& At(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const std::vector<Output>& inputs_;
};

}  // namespace cohort
