// Ops that make values: constants, placeholders, fills and ranges.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns a constant. Shape inference and constant folding use its value. If `name` is "", the name is the op's.
COHORT_EXPORT Output Const(Graph& graph, const Tensor& value, const std::string& name = "");
// Returns a scalar whose dtype is that of the C++ type: 1.0f is float32, 1.0 is float64, 1 is int32.
template <typename T>
requires std::is_arithmetic_v<T> || std::same_as<T, std::string> Output Const(Graph& graph, T value,
                                                                              const std::string& name = "") {
  return Const(graph, Tensor::Scalar(value), name);
}
inline Output Const(Graph& graph, const char* value, const std::string& name = "") {
  return Const(graph, Tensor::Scalar(value), name);
}
// Returns a vector.
template <typename T>
Output Const(Graph& graph, const std::vector<T>& values, const std::string& name = "") {
  return Const(graph, Tensor::Vector(values), name);
}
// Returns a tensor of `shape` with the `values` in row-major order. Throws InvalidArgumentError if the counts differ.
template <typename T>
Output Const(Graph& graph, const std::vector<T>& values, const Shape& shape, const std::string& name = "") {
  return Const(graph, Tensor::FromValues(values, shape), name);
}
// Returns a scalar with the dtype of `like`, by the rules of operand.h. Throws InvalidArgumentError if the dtype cannot
// hold `value`.
COHORT_EXPORT Output ScalarLike(Output like, Number value);
// Returns the same as a Tensor of `dtype`. Throws as ScalarLike.
COHORT_EXPORT Tensor NumberTensor(DType dtype, Number value);
// Returns a vector of int32, or of int64 if a value does not fit into int32. It is for shapes, axes and permutations.
COHORT_EXPORT Output IntVector(Graph& graph, const std::vector<int64_t>& values);
// Returns a fully defined shape as an int32 vector, or int64 if a dimension does not fit into int32.
COHORT_EXPORT Output ShapeConst(Graph& graph, const Shape& shape);

// Returns a value that has to be fed in every step that uses it. Dimensions of `shape` may be unknown. A feed of
// another dtype or shape is an InvalidArgumentError of Run.
COHORT_EXPORT Output Placeholder(Graph& graph, DType dtype, const Shape& shape = Shape::UnknownRank(),
                                 const std::string& name = "");
// Returns `input`, unless a step feeds another value.
COHORT_EXPORT Output PlaceholderWithDefault(Output input, const Shape& shape, const std::string& name = "");

// Returns a tensor of shape `dims` (int32 or int64 [rank]), filled with the scalar `value`.
COHORT_EXPORT Output Fill(Output dims, const Operand& value);
// Returns the vector start, start + delta, ... up to but without `limit`. The three are scalars of one dtype, and at
// least one is a value of the graph. Throws InvalidArgumentError for a delta of 0 or of the wrong sign: when the node
// is added if the values are known, else when the step runs.
COHORT_EXPORT Output Range(const Operand& start, const Operand& limit, const Operand& delta);
COHORT_EXPORT Output ZerosLike(Output x);
COHORT_EXPORT Output OnesLike(Output x);

}  // namespace cohort::ops
