#include "cohort/ops/reduction_gradient.h"

#include <algorithm>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/dims.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/scan.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

// The axes of the reduction, one flag a dimension, where they are known.
std::optional<std::vector<bool>> KnownAxes(GradientContext& c) {
  const Node& axes = *c.input(1).node;
  const int rank = c.input(0).shape().rank();
  if (rank < 0 || axes.op_name() != "Const") return std::nullopt;
  return AxisMask(IntegerValues(axes.attr<Tensor>("value")), rank);
}

// Shape of the result with the reduced dimensions kept as 1, computed while the step runs: the input's shape
// with ones stitched over the reduced axes.
Output KeptShape(GradientContext& c) {
  Graph& graph = c.graph();
  const Output x = c.input(0);
  const Output shape = ShapeOf(x), rank = Rank(x);
  const Output flat = Reshape(Cast(c.input(1), DType::kInt32), {-1});
  const Output axes = FloorMod(flat + rank, rank);
  const Output all = Range(Const(graph, 0), rank, Const(graph, 1));
  return DynamicStitch({all, axes}, {shape, OnesLike(axes)});
}

// `value`, shaped as the output, with a dimension of 1 where one was reduced, so that it broadcasts to the
// input.
Output WithKeptDims(GradientContext& c, Output value) {
  if (c.attr<bool>("keep_dims")) return value;
  const auto reduced = KnownAxes(c);
  if (!reduced) return Reshape(value, KeptShape(c));
  const size_t count = static_cast<size_t>(std::count(reduced->begin(), reduced->end(), true));
  // Leading dimensions appear by broadcasting itself.
  const bool leading = std::all_of(reduced->begin(), reduced->begin() + static_cast<std::ptrdiff_t>(count),
                                   [](bool flag) { return flag; });
  if (leading) return value;
  const Shape kept = ReducedShape(c.input(0).shape(), *reduced, true);
  if (kept.IsFullyDefined()) return Reshape(value, ShapeConst(c.graph(), kept));
  for (size_t i = 0; i < reduced->size(); ++i) {
    if ((*reduced)[i]) value = ExpandDims(value, static_cast<int>(i));
  }
  return value;
}

Output BroadcastToInput(GradientContext& c, Output value) {
  const Shape& shape = c.input(0).shape();
  if (value.shape() == shape && shape.IsFullyDefined()) return value;
  return BroadcastTo(value, ShapeValue(c.input(0)));
}

// How many elements of the input go into one of the output, as a scalar of the gradient's dtype.
Output ElementsPerResult(GradientContext& c, DType dtype) {
  const int64_t in = c.input(0).shape().num_elements();
  const int64_t out = c.output(0).shape().num_elements();
  if (in >= 0 && out > 0) return Const(c.graph(), NumberTensor(dtype, static_cast<double>(in / out)));
  const Output ratio = FloorDiv(Size(c.input(0)), Maximum(Size(c.output(0)), Const(c.graph(), 1)));
  return Cast(ratio, dtype);
}

}  // namespace

void SumGradient(GradientContext& c) { c.SetInput(0, BroadcastToInput(c, WithKeptDims(c, c.grad()))); }

void MeanGradient(GradientContext& c) {
  const Output g = c.grad();
  c.SetInput(0, BroadcastToInput(c, WithKeptDims(c, g / ElementsPerResult(c, g.dtype()))));
}

void ExtremumReductionGradient(GradientContext& c) {
  const Output x = c.input(0);
  const Output hits = Cast(Equal(x, WithKeptDims(c, c.output(0))), x.dtype());
  const Output ties = Sum(hits, c.input(1), true);
  c.SetInput(0, hits / ties * WithKeptDims(c, c.grad()));
}

// d prod / d x_i = the product of all others = (product of those before i) * (product of those after i),
// along one axis into which the reduced axes have been merged.
void ProdGradient(GradientContext& c) {
  const auto reduced = KnownAxes(c);
  if (!reduced) {
    throw InvalidArgumentError("the gradient of Prod needs constant axes and a known rank");
  }
  const Output x = c.input(0);
  std::vector<int64_t> perm;
  for (const bool wanted : {false, true}) {
    for (size_t i = 0; i < reduced->size(); ++i) {
      if ((*reduced)[i] == wanted) perm.push_back(static_cast<int64_t>(i));
    }
  }
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  const Output moved = Transpose(x, perm);
  const Output per_result = Cast(ElementsPerResult(c, DType::kInt64), DType::kInt32);
  const Output rows = Size(c.output(0));
  const Output matrix = Reshape(moved, c.graph().Op("Pack").Inputs({rows, per_result}).Finish1());
  const Output others = Cumprod(matrix, 1, true, false) * Cumprod(matrix, 1, true, true);
  const Output restored = Transpose(Reshape(others, ShapeOf(moved)), inverse);
  c.SetInput(0, restored * WithKeptDims(c, c.grad()));
}

}  // namespace cohort::ops
