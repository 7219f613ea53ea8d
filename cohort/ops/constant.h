// Ops that make values: constants, placeholders, fills and ranges.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns a constant. Shape inference and constant folding use its value. If `name` is "", the node is called "Const",
// "Const_1" and so on.
COHORT_EXPORT Output Const(Graph& graph, const Tensor& value, const NodeName& name = "");
// Returns a constant scalar whose dtype is that of the C++ type: 1.0f is float32, 1.0 is float64, 1 is int32.
template <typename T>
requires std::is_arithmetic_v<T> || std::same_as<T, std::string> Output Const(Graph& graph, T value,
                                                                              const NodeName& name = "") {
  return Const(graph, Tensor::Scalar(value), name);
}
inline Output Const(Graph& graph, const char* value, const NodeName& name = "") {
  return Const(graph, Tensor::Scalar(value), name);
}
// Returns a constant vector.
template <typename T>
Output Const(Graph& graph, const std::vector<T>& values, const NodeName& name = "") {
  return Const(graph, Tensor::Vector(values), name);
}
// Returns a constant of the shape `shape` with the `values` in row-major order. Throws InvalidArgumentError if the
// shape does not have as many elements as there are values.
template <typename T>
Output Const(Graph& graph, const std::vector<T>& values, const Shape& shape, const NodeName& name = "") {
  return Const(graph, Tensor::FromValues(values, shape), name);
}
// Returns a constant scalar: `value`, converted to the dtype of `like`. Throws InvalidArgumentError if the dtype cannot
// hold `value`. (operand.h says which dtype can hold which number.)
COHORT_EXPORT Output ScalarLike(Output like, Number value, const NodeName& name = "");
// Returns `value` as a scalar Tensor of `dtype`. Throws what ScalarLike throws.
COHORT_EXPORT Tensor NumberTensor(DType dtype, Number value);
// Returns a vector of int32, or of int64 if a value does not fit into int32. It is for shapes, axes and permutations.
COHORT_EXPORT Output IntVector(Graph& graph, const std::vector<int64_t>& values, const NodeName& name = "");
// Returns the dimensions of `shape` as a constant vector: of int32, or of int64 if a dimension does not fit into int32.
// Requires: all dimensions are known.
COHORT_EXPORT Output ShapeConst(Graph& graph, const Shape& shape, const NodeName& name = "");

// Returns a value that has to be fed in every step that uses it. Dimensions of `shape` may be unknown. Run throws
// InvalidArgumentError if a fed value has another dtype, or a shape that does not fit `shape`.
COHORT_EXPORT Output Placeholder(Graph& graph, DType dtype, const Shape& shape = Shape::UnknownRank(),
                                 const NodeName& name = "");
// Returns `input`, or the value that a step feeds instead. `shape` is the shape of the result; its dimensions may be
// unknown. Throws InvalidArgumentError if the shape of `input` does not fit `shape`.
COHORT_EXPORT Output PlaceholderWithDefault(Output input, const Shape& shape, const NodeName& name = "");

// Returns a tensor of shape `dims` (int32 or int64 [rank]), filled with the scalar `value`.
COHORT_EXPORT Output Fill(Output dims, const Operand& value, const NodeName& name = "");
// Returns the vector start, start + delta, ... up to but without `limit`. The three arguments are scalars of the same
// dtype, and at least one of them is a value of the graph. A delta of 0, or one that leads away from `limit`, is an
// InvalidArgumentError. Range throws it if the three values are known when the graph is built. Otherwise the step fails
// with it.
COHORT_EXPORT Output Range(const Operand& start, const Operand& limit, const Operand& delta, const NodeName& name = "");
COHORT_EXPORT Output ZerosLike(Output x, const NodeName& name = "");
COHORT_EXPORT Output OnesLike(Output x, const NodeName& name = "");

}  // namespace cohort::ops
