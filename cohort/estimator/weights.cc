#include "cohort/estimator/weights.h"

#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/math.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"

namespace cohort::weights {

Output AsFloat(Output value) { return value.dtype() == DType::kFloat32 ? value : ops::Cast(value, DType::kFloat32); }

Output For(Output values, const ops::Operand& weights) {
  Graph& graph = values.graph();
  if (weights.is_number()) {
    const auto number = weights.number().As(DType::kFloat32);
    if (number && number->scalar<float>() == 1.0f) return {};
    return weights.In(graph, DType::kFloat32, "weights");
  }
  const Output given = AsFloat(weights.output());
  const Shape& shape = given.shape();
  const Shape& of = values.shape();
  if (shape.IsScalar()) return given;
  // Values and weights of different ranks must not broadcast to more elements than there are values.
  if (!shape.has_rank() || !of.has_rank()) return ops::BroadcastTo(given, ops::ShapeOf(values));
  bool fits = shape.rank() == of.rank();
  for (int i = 0; fits && i < of.rank(); ++i) {
    fits = shape.dim(i) == 1 || shape.dim(i) < 0 || of.dim(i) < 0 || shape.dim(i) == of.dim(i);
  }
  if (fits) return given;
  throw InvalidArgumentError(StrCat("[estimator/weights] expected a weight for '", values.name(),
                                    "', or weights whose dimensions are 1 or those of its shape ", of, "; got '",
                                    given.name(), "' of shape ", shape));
}

Output Matrix(Output value, int64_t n, Output like) {
  const Shape& shape = value.shape();
  const bool fits = shape.rank() > 0 && shape.Sub(1, shape.rank()).num_elements() == n;
  if (value == like && fits) return ops::Reshape(value, {-1, n});
  const Output batch = ops::Slice(ops::ShapeOf(like), {0}, {1});
  const Output columns = ops::Const(like.graph(), std::vector<int32_t>{static_cast<int32_t>(n)});
  return ops::Reshape(ops::Reshape(value, ops::Concat({batch, columns}, 0)), {-1, n});
}

Output DivideOrZero(Output numerator, Output denominator) {
  const Output zero = ops::Equal(denominator, 0);
  return ops::SelectV2(zero, ops::ScalarLike(numerator, 0), numerator / ops::SelectV2(zero, 1, denominator));
}

}  // namespace cohort::weights
