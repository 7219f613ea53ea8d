#include "cohort/ops/nn.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/random.h"
#include "cohort/ops/register.h"
#include "cohort/ops/select.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

int ChannelAxis(const ShapeContext& c, int rank) { return c.attr<std::string>("data_format") == "NCHW" ? 1 : rank - 1; }

std::vector<Shape> BiasAddShape(ShapeContext& c) {
  Shape value = c.WithRankAtLeast(0, 2);
  const Shape bias = c.WithRank(1, 1);
  if (!value.has_rank()) return {value};
  const int axis = ChannelAxis(c, value.rank());
  value.set_dim(axis, value.Sub(axis, axis + 1).MergedWith(bias).dim(0));
  return {value};
}

std::vector<Shape> BiasAddGradShape(ShapeContext& c) {
  const Shape value = c.WithRankAtLeast(0, 2);
  if (!value.has_rank()) return {Shape::UnknownDims(1)};
  return {Shape{value.dim(ChannelAxis(c, value.rank()))}};
}

std::vector<Shape> InTopKShape(ShapeContext& c) {
  c.WithRank(2, 0);
  return {c.WithRank(0, 2).Sub(0, 1).MergedWith(c.WithRank(1, 1))};
}

}  // namespace

void RegisterNnOps(OpRegistry& registry) {
  registry.Register(
      OpDef("BiasAdd")
          .Input("value: T")
          .Input("bias: T")
          .Output("output: T")
          .Attr("T: {float32, float64, bfloat16}")
          .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
          .ShapeRule(BiasAddShape)
          .Gradient([](GradientContext& c) {
            const Output g = c.grad(0);
            c.SetInput(0, g);
            c.SetInput(
                1,
                c.graph().Op("BiasAddGrad").Input(g).Attr("data_format", c.attr<std::string>("data_format")).Finish1());
          })
          .Doc("value + bias, bias along the channel axis: the last one (NHWC) or axis 1 (NCHW)."));
  registry.Register(
      OpDef("BiasAddGrad")
          .Input("out_backprop: T")
          .Output("output: T")
          .Attr("T: {float32, float64, bfloat16}")
          .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
          .ShapeRule(BiasAddGradShape)
          .Gradient([](GradientContext& c) {
            c.SetInput(0, ops::BiasAdd(ops::ZerosLike(c.input(0)), c.grad(0), c.attr<std::string>("data_format")));
          })
          .Doc("Sum of out_backprop over all axes but the channel axis: the gradient of BiasAdd's bias."));
  registry.Register(OpDef("L2Loss")
                        .Input("t: T")
                        .Output("output: T")
                        .Attr("T: {float32, float64, bfloat16}")
                        .ShapeRule(ops::ScalarShape)
                        .Gradient([](GradientContext& c) { c.SetInput(0, ops::Mul(c.input(0), c.grad(0))); })
                        .Doc("sum(t^2) / 2."));
  registry.Register(OpDef("InTopKV2")
                        .Input("predictions: float32")
                        .Input("targets: T")
                        .Input("k: T")
                        .Output("precision: bool")
                        .Attr("T: {int32, int64} = int32")
                        .ShapeRule(InTopKShape)
                        .NotDifferentiable("truth values")
                        .Doc("Whether targets[b] is among the k largest of predictions[b]."));
}

namespace ops {

Output BiasAdd(Output value, Output bias, const std::string& data_format, const NodeName& name) {
  return Op("BiasAdd", {value, bias}).Name(name).Attr("data_format", data_format).Finish1();
}

Output L2Loss(Output t, const NodeName& name) { return Op("L2Loss", {t}).Name(name).Finish1(); }

Output InTopK(Output predictions, Output targets, int64_t k, const NodeName& name) {
  Graph& graph = predictions.graph();
  const Output count = ScalarLike(targets, static_cast<double>(k));
  return graph.Op("InTopKV2").Name(name).Input(predictions).Input(targets).Input(count).Finish1();
}

namespace {

void CheckRate(double rate) {
  if (rate >= 0.0 && rate < 1.0) return;
  throw InvalidArgumentError(StrCat("[ops/nn] expected a dropout rate in [0, 1); got ", rate));
}

// `drawn`: of x's shape and dtype, in [0, 1).
Output Dropped(Output x, double rate, Output drawn) {
  const Output keep = GreaterEqual(drawn, ScalarLike(x, rate));
  return SelectV2(keep, Mul(x, ScalarLike(x, 1.0 / (1.0 - rate))), ScalarLike(x, 0.0));
}

}  // namespace

Output Dropout(Output x, double rate, int64_t seed, const NodeName& name) {
  CheckRate(rate);
  if (rate == 0.0) return x;
  const NameScope scope(x.graph(), name);
  const CallSiteScope site(x.graph(), name.site());
  return Dropped(x, rate, RandomUniform(ShapeOf(x), x.dtype(), seed));
}

Output StatelessDropout(Output x, double rate, Output seed, const NodeName& name) {
  CheckRate(rate);
  if (rate == 0.0) return x;
  const NameScope scope(x.graph(), name);
  const CallSiteScope site(x.graph(), name.site());
  return Dropped(x, rate, StatelessRandomUniform(ShapeOf(x), seed, x.dtype()));
}

}  // namespace ops
}  // namespace cohort
