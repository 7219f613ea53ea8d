// Where values come from: constants, placeholders, fills and ranges.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// A constant. Its value takes part in shape inference and constant folding. `name` "" = the op's name.
COHORT_EXPORT Output Const(Graph& graph, const Tensor& value, const std::string& name = "");
// A scalar of exactly the C++ type's dtype: 1.0f is float32, 1.0 float64, 1 int32.
template <typename T>
requires std::is_arithmetic_v<T> || std::same_as<T, std::string> Output Const(Graph& graph, T value,
                                                                              const std::string& name = "") {
  return Const(graph, Tensor::Scalar(value), name);
}
inline Output Const(Graph& graph, const char* value, const std::string& name = "") {
  return Const(graph, Tensor::Scalar(value), name);
}
// Rank 1.
template <typename T>
Output Const(Graph& graph, const std::vector<T>& values, const std::string& name = "") {
  return Const(graph, Tensor::Vector(values), name);
}
// Row-major `values` in `shape`. Throws InvalidArgumentError where the counts differ.
template <typename T>
Output Const(Graph& graph, const std::vector<T>& values, const Shape& shape, const std::string& name = "") {
  return Const(graph, Tensor::FromValues(values, shape), name);
}
// A scalar with the dtype of `like`, by the rules of operand.h. Throws InvalidArgumentError if it cannot hold `value`.
COHORT_EXPORT Output ScalarLike(Output like, Number value);
// Likewise, as a tensor.
COHORT_EXPORT Tensor NumberTensor(DType dtype, Number value);
// An int32 vector: shapes, axes, permutations.
COHORT_EXPORT Output IntVector(Graph& graph, const std::vector<int64_t>& values);
// A fully defined shape as an int32 vector (int64 where a dimension needs it).
COHORT_EXPORT Output ShapeConst(Graph& graph, const Shape& shape);

// Fed at each step. Dimensions of `shape` may be unknown.
COHORT_EXPORT Output Placeholder(Graph& graph, DType dtype, const Shape& shape = Shape::UnknownRank(),
                                 const std::string& name = "");
// `input` unless it is fed.
COHORT_EXPORT Output PlaceholderWithDefault(Output input, const Shape& shape, const std::string& name = "");

// A tensor of shape `dims` (int32 or int64 [rank]) filled with the scalar `value`.
COHORT_EXPORT Output Fill(Output dims, const Operand& value);
// [start, start + delta, ...) up to but without `limit`; three scalars of one dtype, at least one of them in the graph.
COHORT_EXPORT Output Range(const Operand& start, const Operand& limit, const Operand& delta);
COHORT_EXPORT Output ZerosLike(Output x);
COHORT_EXPORT Output OnesLike(Output x);

}  // namespace cohort::ops
