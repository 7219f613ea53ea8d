// LayerNorm and its gradient. A row is a vector along the last axis. The forward op keeps the mean and the reciprocal
// of the deviation of each row for the gradient.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/math.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"

namespace cohort {
namespace {

// The dtype of scale, offset and statistics for an x of dtype `t`.
DType ParameterDType(DType t) { return t == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

void CheckParameterDType(const ShapeContext& c) {
  const DType x = c.attr<DType>("T"), scale = c.attr<DType>("U");
  if (scale == ParameterDType(x)) return;
  throw InvalidArgumentError(StrCat("[ops/layer_norm] expected scale of dtype ", ParameterDType(x), " for x of dtype ",
                                    x, "; got ", scale, "; cast one of them"));
}

// Returns the shape of x if the vector `scale` fits it.
Shape RowsShape(Shape x, const Shape& scale) {
  if (!x.has_rank()) return x;
  const int last = x.rank() - 1;
  x.set_dim(last, Shape{x.dim(last)}.MergedWith(scale).dim(0));
  return x;
}

// Returns the shape of the mean of each row.
Shape StatisticsShape(const Shape& x) { return x.has_rank() ? x.Sub(0, x.rank() - 1) : x; }

std::vector<Shape> LayerNormShape(ShapeContext& c) {
  CheckParameterDType(c);
  const Shape x = RowsShape(c.WithRankAtLeast(0, 1), c.WithRank(1, 1).MergedWith(c.WithRank(2, 1)));
  const Shape statistics = StatisticsShape(x);
  return {x, statistics, statistics};
}

std::vector<Shape> LayerNormGradShape(ShapeContext& c) {
  CheckParameterDType(c);
  const Shape scale = c.WithRank(2, 1);
  const Shape x = RowsShape(c.WithRankAtLeast(0, 1).MergedWith(c.WithRankAtLeast(1, 1)), scale);
  const Shape statistics = StatisticsShape(x);
  for (const int i : {3, 4}) statistics.MergedWith(c.input(i));  // throws if they do not fit
  const Shape channels = x.has_rank() ? Shape{x.dim(x.rank() - 1)} : scale;
  return {x, channels, channels};
}

void LayerNormGradient(GradientContext& c) {
  Node* gradient = c.graph()
                       .Op("LayerNormGrad")
                       .Input(c.grad(0))
                       .Input(c.input(0))
                       .Input(c.input(1))
                       .Input(c.output(1))
                       .Input(c.output(2))
                       .Attr("epsilon", c.attr<float>("epsilon"))
                       .Finish();
  for (int i = 0; i < 3; ++i) c.SetInput(i, gradient->output(i));
}

// The second derivative: of the gradient written out in small ops on a matrix [rows, channels]. Mean and deviation are
// functions of x there, and not the inputs of the node.
void LayerNormGradGradient(GradientContext& c) {
  const Output scale = c.input(2);
  const Output flat_mean = ops::Reshape(c.input(3), ops::Const(c.graph(), std::vector<int32_t>{-1}));
  const Output matrix = ops::Concat({ops::ShapeOf(flat_mean), ops::ShapeOf(scale)}, 0);
  const auto rows = [&](Output from) { return ops::Reshape(ops::Cast(from, scale.dtype()), matrix); };
  const Output dy = rows(c.input(0)), x = rows(c.input(1));
  const auto mean = [](Output of) { return ops::Mean(of, {-1}, /*keep_dims=*/true); };
  const Output centred = x - mean(x);
  const Output variance = mean(ops::Square(centred));
  const Output inverse = ops::Rsqrt(variance + ops::ScalarLike(variance, c.attr<float>("epsilon")));
  const Output normal = centred * inverse;
  const Output scaled = dy * scale;
  const Output dx = inverse * (scaled - mean(scaled) - normal * mean(scaled * normal));
  const std::vector<Output> ys = {dx, ops::Sum(dy * normal, {0}), ops::Sum(dy, {0})};
  const std::vector<Output> xs = {dy, x, scale};
  const std::vector<Gradient> gradients = Gradients(ys, xs, {rows(c.grad(0)), c.grad(1), c.grad(2)}, xs);
  for (int i = 0; i < 3; ++i) {
    const Gradient& gradient = gradients[static_cast<size_t>(i)];
    if (!gradient.exists()) continue;
    const Output of_matrix = ops::Cast(gradient.values, c.input(i).dtype());
    c.SetInput(i, i == 2 ? of_matrix : ops::Reshape(of_matrix, ops::ShapeOf(c.input(i))));
  }
}

OpDef&& AddLayerNormAttrs(OpDef&& def) {
  return std::move(std::move(def)
                       .Attr("T: {float32, float64, bfloat16}")
                       .Attr("U: {float32, float64}")
                       .Attr("epsilon: float = 0.001"));
}

}  // namespace

void RegisterLayerNormOps(OpRegistry& registry) {
  registry.Register(AddLayerNormAttrs(OpDef("LayerNorm")
                                          .Input("x: T")
                                          .Input("scale: U")
                                          .Input("offset: U")
                                          .Output("y: T")
                                          .Output("mean: U")
                                          .Output("inverse_deviation: U"))
                        .ShapeRule(LayerNormShape)
                        .Gradient(LayerNormGradient)
                        .Doc("scale (x - mean) inverse_deviation + offset, where inverse_deviation = 1 / sqrt(variance "
                             "+ epsilon); mean and variance are those of a vector along the last axis."));
  registry.Register(AddLayerNormAttrs(OpDef("LayerNormGrad")
                                          .Input("y_backprop: T")
                                          .Input("x: T")
                                          .Input("scale: U")
                                          .Input("mean: U")
                                          .Input("inverse_deviation: U")
                                          .Output("x_backprop: T")
                                          .Output("scale_backprop: U")
                                          .Output("offset_backprop: U"))
                        .ShapeRule(LayerNormGradShape)
                        .Gradient(LayerNormGradGradient)
                        .Doc("Gradients of LayerNorm by x, scale and offset."));
}

namespace ops {

Output LayerNorm(Output x, Output scale, Output offset, float epsilon, const NodeName& name) {
  return Op("LayerNorm", {x}).Name(name).Input(scale).Input(offset).Attr("epsilon", epsilon).Finish()->output(0);
}

}  // namespace ops
}  // namespace cohort
