#include "cohort/ops/normalization.h"

#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/window.h"

namespace cohort {
namespace {

// The shape of x, which `vectors` inputs from `first` on fit: one element a channel.
Shape ImagesShape(ShapeContext& c, int image, int first, int vectors) {
  ops::CheckChannelsLast(c.attr<std::string>("data_format"));
  Shape x = c.WithRank(image, 4);
  Shape channels{x.dim(3)};
  for (int i = first; i < first + vectors; ++i) channels = channels.MergedWith(c.WithRank(i, 1));
  x.set_dim(3, channels.dim(0));
  return x;
}

std::vector<Shape> NormForwardShape(ShapeContext& c) {
  // Mean and variance may be empty where nothing reads them.
  const bool given = !c.attr<bool>("is_training");
  const Shape x = ImagesShape(c, 0, 1, given ? 4 : 2);
  const Shape channels{x.dim(3)};
  return {x, channels, channels, channels, channels, Shape{}};
}

std::vector<Shape> GradShape(ShapeContext& c) {
  const Shape x = ImagesShape(c, 1, 2, 1).MergedWith(c.WithRank(0, 4));
  const Shape channels{x.dim(3)};
  return {x, channels, channels, Shape{0}, Shape{0}};
}

void ForwardGradient(GradientContext& c) {
  const bool training = c.attr<bool>("is_training");
  Node* gradient = c.graph()
                       .Op("FusedBatchNormGradV3")
                       .Input(c.grad(0))
                       .Input(c.input(0))
                       .Input(c.input(1))
                       .Input(training ? c.output(3) : c.input(3))
                       .Input(training ? c.output(4) : c.input(4))
                       .Input(c.output(5))
                       .Attr("epsilon", c.attr<float>("epsilon"))
                       .Attr("data_format", c.attr<std::string>("data_format"))
                       .Attr("is_training", training)
                       .Finish();
  for (int i = 0; i < 3; ++i) c.SetInput(i, gradient->output(i));
}

// The second derivative: of the gradient written out in small ops, mean and variance included.
void GradGradient(GradientContext& c) {
  const Output dy = ops::Cast(c.input(0), DType::kFloat32), x = ops::Cast(c.input(1), DType::kFloat32);
  const Output scale = c.input(2);
  const bool training = c.attr<bool>("is_training");
  const ops::IntList axes{0, 1, 2};
  const Output mean = training ? ops::Mean(x, axes) : c.input(3);
  const Output centred = x - mean;
  const Output variance = training ? ops::Mean(ops::Square(centred), axes) : c.input(4);
  const Output inverse = ops::Rsqrt(variance + ops::ScalarLike(variance, c.attr<float>("epsilon")));
  const Output normal = centred * inverse;
  Output dx = dy;
  if (training) dx = dy - ops::Mean(dy, axes) - normal * ops::Mean(dy * normal, axes);
  const std::vector<Output> ys = {dx * (scale * inverse), ops::Sum(dy * normal, axes), ops::Sum(dy, axes)};
  const std::vector<Output> xs = {dy, x, scale};
  const std::vector<Gradient> gradients =
      Gradients(ys, xs, {ops::Cast(c.grad(0), DType::kFloat32), c.grad(1), c.grad(2)}, xs);
  for (int i = 0; i < 3; ++i) {
    const Gradient& gradient = gradients[static_cast<size_t>(i)];
    if (gradient.exists()) c.SetInput(i, ops::Cast(gradient.values, c.input(i).dtype()));
  }
}

OpDef&& AddNormAttrs(OpDef&& def) {
  return std::move(std::move(def)
                       .Attr("T: {float32, bfloat16}")
                       .Attr("U: {float32}")
                       .Attr("epsilon: float = 0.0001")
                       .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
                       .Attr("is_training: bool = true"));
}

}  // namespace

void RegisterNormalizationOps(OpRegistry& registry) {
  registry.Register(AddNormAttrs(OpDef("FusedBatchNormV3")
                                     .Input("x: T")
                                     .Input("scale: U")
                                     .Input("offset: U")
                                     .Input("mean: U")
                                     .Input("variance: U")
                                     .Output("y: T")
                                     .Output("batch_mean: U")
                                     .Output("batch_variance: U")
                                     .Output("reserve_space_1: U")
                                     .Output("reserve_space_2: U")
                                     .Output("reserve_space_3: U"))
                        .Attr("exponential_avg_factor: float = 1.0")
                        .ShapeRule(NormForwardShape)
                        .Gradient(ForwardGradient)
                        .Doc("scale (x - mean) / sqrt(variance + epsilon) + offset for each channel; in training with "
                             "the batch's mean and variance, which the reserve spaces keep for the gradient."));
  registry.Register(AddNormAttrs(OpDef("FusedBatchNormGradV3")
                                     .Input("y_backprop: T")
                                     .Input("x: T")
                                     .Input("scale: float32")
                                     .Input("reserve_space_1: U")
                                     .Input("reserve_space_2: U")
                                     .Input("reserve_space_3: U")
                                     .Output("x_backprop: T")
                                     .Output("scale_backprop: U")
                                     .Output("offset_backprop: U")
                                     .Output("reserve_space_4: U")
                                     .Output("reserve_space_5: U"))
                        .ShapeRule(GradShape)
                        .Gradient(GradGradient)
                        .Doc("Gradients of FusedBatchNormV3 by x, scale and offset, from the mean and the variance "
                             "(divided by the count) in reserve spaces 1 and 2."));
}

namespace ops {

BatchNorm FusedBatchNorm(Output x, Output scale, Output offset, Output mean, Output variance,
                         const BatchNormOptions& options, const NodeName& name) {
  Node* node = Op("FusedBatchNormV3", {x})
                   .Name(name)
                   .Input(scale)
                   .Input(offset)
                   .Input(mean)
                   .Input(variance)
                   .Attr("epsilon", options.epsilon)
                   .Attr("is_training", options.is_training)
                   .Attr("exponential_avg_factor", options.exponential_avg_factor)
                   .Finish();
  return {node->output(0), node->output(1), node->output(2)};
}

}  // namespace ops
}  // namespace cohort
