// Functions that say what is known of a value while a graph is built. Constants are known, and so are values that
// follow from constants and from static shapes.
#pragma once

#include <optional>

#include "cohort/graph/graph.h"
#include "cohort/graph/op_def.h"

namespace cohort {

// Returns the tensor if the value is known, else nullopt. Two kinds of values are known:
// - the output of a Const, also through Identity nodes;
// - an int32 or int64 scalar or vector of at most 1024 elements that these ops compute from constants and static
//   shapes: Shape, Size, Rank, Pack, ConcatV2, Cast, Identity, StridedSlice, Range, Add, AddV2, Sub, Mul. At most 256
//   nodes may take part.
std::optional<Tensor> ConstantValue(const Output& value);

// Returns the shape that `value`, an int32 or int64 vector, describes. An element that is unknown or -1 becomes an
// unknown dimension. The result is UnknownRank if the length of the vector is unknown. Throws InvalidArgumentError if
// the value cannot be a shape: it has another rank or dtype, more than Shape::kMaxRank elements, or an element less
// than -1.
Shape ConstantValueAsShape(const Output& value);
// Returns the shape that a tensor describes. Throws as ConstantValueAsShape does.
Shape TensorAsShape(const Tensor& value);

// The names of two attributes of a Placeholder node that is a function's argument. If the argument is the handle of a
// variable, they hold the variable's dtype and shape, each as a list of one element.
inline constexpr char kHandleDTypes[] = "_handle_dtypes";
inline constexpr char kHandleShapes[] = "_handle_shapes";

// Returns the node that made a handle, such as a VarHandleOp. Goes back through Identity nodes.
const Node& HandleSource(const Output& handle);
// Return shape and dtype of the variable of a handle, or UnknownRank and kInvalid if they are not known.
Shape HandleShape(const Output& handle);
DType HandleDType(const Output& handle);

// The facts that are known about the inputs of a node that is being added to a graph. The shape rule of the op uses
// them. NodeBuilder makes a StaticFacts for one call of the rule. Only one thread uses it.
class StaticFacts final : public InputFacts {
 public:
  // `inputs` must live as long as the StaticFacts.
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
