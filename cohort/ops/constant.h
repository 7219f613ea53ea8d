// Where values come from: constants, placeholders, fills and ranges.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// A constant. Its value takes part in shape inference and constant folding. `name` "" = the op's name.
Output Const(Graph& graph, const Tensor& value, const NodeName& name = "");
// A scalar of exactly the C++ type's dtype: 1.0f is float32, 1.0 float64, 1 int32.
template <typename T>
requires std::is_arithmetic_v<T> || std::same_as<T, std::string> Output Const(Graph& graph, T value,
                                                                              const NodeName& name = "") {
  return Const(graph, Tensor::Scalar(value), name);
}
inline Output Const(Graph& graph, const char* value, const NodeName& name = "") {
  return Const(graph, Tensor::Scalar(value), name);
}
// Rank 1.
template <typename T>
Output Const(Graph& graph, const std::vector<T>& values, const NodeName& name = "") {
  return Const(graph, Tensor::Vector(values), name);
}
// Row-major `values` in `shape`. Throws InvalidArgumentError where the counts differ.
template <typename T>
Output Const(Graph& graph, const std::vector<T>& values, const Shape& shape, const NodeName& name = "") {
  return Const(graph, Tensor::FromValues(values, shape), name);
}
// A scalar with the dtype of `like`, by the rules of operand.h. Throws InvalidArgumentError if it cannot hold `value`.
Output ScalarLike(Output like, Number value, const NodeName& name = "");
// Likewise, as a tensor.
Tensor NumberTensor(DType dtype, Number value);
// An int32 vector: shapes, axes, permutations.
Output IntVector(Graph& graph, const std::vector<int64_t>& values, const NodeName& name = "");
// A fully defined shape as an int32 vector (int64 where a dimension needs it).
Output ShapeConst(Graph& graph, const Shape& shape, const NodeName& name = "");

// Fed at each step. Dimensions of `shape` may be unknown.
Output Placeholder(Graph& graph, DType dtype, const Shape& shape = Shape::UnknownRank(), const NodeName& name = "");
// `input` unless it is fed.
Output PlaceholderWithDefault(Output input, const Shape& shape, const NodeName& name = "");

// A tensor of shape `dims` (int32 or int64 [rank]) filled with the scalar `value`.
Output Fill(Output dims, const Operand& value, const NodeName& name = "");
// [start, start + delta, ...) up to but without `limit`; three scalars of one dtype, at least one of them in the graph.
Output Range(const Operand& start, const Operand& limit, const Operand& delta, const NodeName& name = "");
Output ZerosLike(Output x, const NodeName& name = "");
Output OnesLike(Output x, const NodeName& name = "");

}  // namespace cohort::ops
