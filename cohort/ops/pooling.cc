#include "cohort/ops/pooling.h"

#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/array.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/window.h"

namespace cohort {
namespace {

OpDef&& AddPoolAttrs(OpDef&& def) {
  return std::move(std::move(def)
                       .Attr("T: {float32, bfloat16}")
                       .Attr("ksize: list(int) >= 4")
                       .Attr("strides: list(int) >= 4")
                       .Attr("padding: {'SAME', 'VALID'}")
                       .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'"));
}

std::vector<Shape> PoolForwardShape(ShapeContext& c) { return {ops::PooledShape(ops::PoolWindow(c), c.input(0))}; }

// Inputs: the pool's input and output, and a tensor shaped like input `grad_like` of the two.
template <int grad_like>
std::vector<Shape> MaxGradShape(ShapeContext& c) {
  Shape input = c.WithRank(0, 4), output = c.WithRank(1, 4);
  (grad_like == 0 ? input : output) = (grad_like == 0 ? input : output).MergedWith(c.WithRank(2, 4));
  output = output.MergedWith(ops::PooledShape(ops::PoolWindow(c), input));
  return {grad_like == 0 ? output : input};
}

std::vector<Shape> AvgGradShape(ShapeContext& c) {
  const Shape input = Shape::UnknownDims(4).MergedWith(c.input_as_shape(0));
  ops::PooledShape(ops::PoolWindow(c), input).MergedWith(c.WithRank(1, 4));
  return {input};
}

}  // namespace

namespace {

void RegisterMaxPool(OpRegistry& registry) {
  registry.Register(AddPoolAttrs(OpDef("MaxPool").Input("input: T").Output("output: T"))
                        .Attr("explicit_paddings: list(int) = []")
                        .ShapeRule(PoolForwardShape)
                        .Gradient([](GradientContext& c) {
                          c.SetInput(0, ops::WithSameWindows(c, "MaxPoolGrad", {c.input(0), c.output(0), c.grad()}));
                        })
                        .Doc("The largest element of each window."));
  registry.Register(
      AddPoolAttrs(
          OpDef("MaxPoolGrad").Input("orig_input: T").Input("orig_output: T").Input("grad: T").Output("output: T"))
          .Attr("explicit_paddings: list(int) = []")
          .ShapeRule(MaxGradShape<1>)
          .Gradient([](GradientContext& c) {
            c.SetInput(2, ops::WithSameWindows(c, "MaxPoolGradGrad", {c.input(0), c.input(1), c.grad()}));
          })
          .Doc("Gradient of MaxPool: grad goes to the first of the largest elements of each window."));
  registry.Register(
      AddPoolAttrs(
          OpDef("MaxPoolGradGrad").Input("orig_input: T").Input("orig_output: T").Input("grad: T").Output("output: T"))
          .ShapeRule(MaxGradShape<0>)
          .Gradient([](GradientContext& c) {
            c.SetInput(2, ops::WithSameWindows(c, "MaxPoolGrad", {c.input(0), c.input(1), c.grad()}));
          })
          .Doc("Gradient of MaxPoolGrad by grad: the elements at the places that MaxPool has chosen."));
}

// `grad` is what is known of the shape of the pool's result.
std::vector<Shape> GradAtPlacesShape(ShapeContext& c, const Shape& grad) {
  const Shape shape = c.attr<Shape>("shape").MergedWith(c.input_as_shape(0));
  ops::PooledShape(ops::PoolWindow(c), shape).MergedWith(grad);
  return {shape};
}

void RegisterMaxPoolWithPlaces(OpRegistry& registry) {
  registry.Register(AddPoolAttrs(OpDef("_MaxPoolWithPlaces")
                                     .Input("input: T")
                                     .Output("output: T")
                                     .Output("places: uint8")
                                     .HostOutput("input_shape: int32"))
                        .Attr("explicit_paddings: list(int) = []")
                        .ShapeRule([](ShapeContext& c) {
                          return std::vector<Shape>{PoolForwardShape(c)[0], Shape::UnknownDims(1), Shape{4}};
                        })
                        .NotDifferentiable("made when a plan is compiled, after gradients")
                        .Doc("MaxPool, and what _MaxPoolGradAtPlaces needs: the place of the largest element of each "
                             "window, and the shape of the input."));
  registry.Register(
      AddPoolAttrs(OpDef("_MaxPoolGradAtPlaces")
                       .HostInput("orig_input_shape: int32")
                       .Input("places: uint8")
                       .Input("grad: T")
                       .Output("output: T"))
          .Attr("explicit_paddings: list(int) = []")
          .Attr("shape: shape")
          .ShapeRule([](ShapeContext& c) { return GradAtPlacesShape(c, c.WithRank(2, 4)); })
          .NotDifferentiable("made when a plan is compiled, after gradients")
          .Doc("MaxPoolGrad with what _MaxPoolWithPlaces has kept; `shape` is what is known of the input's "
               "shape before a step."));
  registry.Register(
      AddPoolAttrs(OpDef("_FusedMaxPoolGradAtPlaces")
                       .HostInput("orig_input_shape: int32")
                       .Input("places: uint8")
                       .Input("grad: T")
                       .Input("activated: T")
                       .Output("output: T"))
          .Attr("explicit_paddings: list(int) = []")
          .Attr("shape: shape")
          .Attr("gradient: string")
          .Attr("activation: string = ''")
          .ShapeRule([](ShapeContext& c) { return GradAtPlacesShape(c, c.WithRank(2, 4).MergedWith(c.input(3))); })
          .NotDifferentiable("made when a plan is compiled, after gradients")
          .Doc("The gradient op named `gradient` of an activation, and _MaxPoolGradAtPlaces of its result, in one; see "
               "_FusedDepthwiseConv2dNativeBackpropInput."));
}

void RegisterAvgPool(OpRegistry& registry) {
  registry.Register(AddPoolAttrs(OpDef("AvgPool").Input("value: T").Output("output: T"))
                        .ShapeRule(PoolForwardShape)
                        .Gradient([](GradientContext& c) {
                          c.SetInput(0, ops::WithSameWindows(c, "AvgPoolGrad", {ops::ShapeOf(c.input(0)), c.grad()}));
                        })
                        .Doc("The mean of the elements of each window, padding left out."));
  registry.Register(
      AddPoolAttrs(OpDef("AvgPoolGrad").HostInput("orig_input_shape: int32").Input("grad: T").Output("output: T"))
          .ShapeRule(AvgGradShape)
          .Gradient([](GradientContext& c) { c.SetInput(1, ops::WithSameWindows(c, "AvgPool", {c.grad()})); })
          .Doc("Gradient of AvgPool: grad shared among the elements of each window."));
  registry.Register(
      AddPoolAttrs(OpDef("_FusedAvgPoolGrad")
                       .HostInput("orig_input_shape: int32")
                       .Input("grad: T")
                       .Input("activated: T")
                       .Output("output: T"))
          .Attr("gradient: string")
          .Attr("activation: string = ''")
          .ShapeRule([](ShapeContext& c) { return std::vector<Shape>{AvgGradShape(c)[0].MergedWith(c.input(2))}; })
          .NotDifferentiable("made when a plan is compiled, after gradients")
          .Doc("AvgPoolGrad and the gradient op named `gradient` of an activation in one; see "
               "_FusedDepthwiseConv2dNativeBackpropInput."));
}

}  // namespace

void RegisterPoolingOps(OpRegistry& registry) {
  RegisterMaxPool(registry);
  RegisterMaxPoolWithPlaces(registry);
  RegisterAvgPool(registry);
}

namespace ops {
namespace {

Output Pool(const char* op, Output input, const PoolOptions& o, const NodeName& name) {
  return Op(op, {input})
      .Name(name)
      .Attr("ksize", std::vector<int64_t>{1, o.size[0], o.size[1], 1})
      .Attr("strides", std::vector<int64_t>{1, o.strides[0], o.strides[1], 1})
      .Attr("padding", o.padding)
      .Finish1();
}

}  // namespace

Output MaxPool(Output input, const PoolOptions& options, const NodeName& name) {
  return Pool("MaxPool", input, options, name);
}
Output AvgPool(Output value, const PoolOptions& options, const NodeName& name) {
  return Pool("AvgPool", value, options, name);
}

}  // namespace ops
}  // namespace cohort
