#include "cohort/ops/convolution.h"

#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/array.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/window.h"

namespace cohort {
namespace {

// The three ops of a kind of convolution, which are each other's gradients: all are linear in each of two operands.
struct Family {
  const char* forward;
  const char* input_grad;
  const char* filter_grad;
  const char* fused;  // forward, bias and activation in one
  bool depthwise;
};
constexpr Family kFull = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "_FusedConv2D", false};
constexpr Family kDepthwise = {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                               "DepthwiseConv2dNativeBackpropFilter", "_FusedDepthwiseConv2dNative", true};

Output ForwardOf(GradientContext& c, const Family& f, Output input, Output filter) {
  return ops::WithSameWindows(c, f.forward, {input, filter});
}
Output InputGradOf(GradientContext& c, const Family& f, Output like, Output filter, Output grad) {
  return ops::WithSameWindows(c, f.input_grad, {ops::ShapeOf(like), filter, grad});
}
Output FilterGradOf(GradientContext& c, const Family& f, Output input, Output like, Output grad) {
  return ops::WithSameWindows(c, f.filter_grad, {input, ops::ShapeOf(like), grad});
}

OpDef&& AddAttrs(OpDef&& def) {
  return std::move(std::move(def)
                       .Attr("T: {float32, bfloat16}")
                       .Attr("strides: list(int)")
                       .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
                       .Attr("explicit_paddings: list(int) = []")
                       .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
                       .Attr("dilations: list(int) = [1, 1, 1, 1]"));
}

std::vector<Shape> ForwardShape(ShapeContext& c, bool depthwise) {
  return {ops::ConvolvedShape(ops::ConvolutionWindow(c), c.input(0), c.input(1), depthwise)};
}

// The shape of a gradient op's result, given at input `sizes`; the other two have to fit it.
Shape SizesShape(ShapeContext& c, int sizes) { return Shape::UnknownDims(4).MergedWith(c.input_as_shape(sizes)); }

Shape InputGradShape(ShapeContext& c, bool depthwise) {
  const Shape input = depthwise ? SizesShape(c, 0) : ops::ImagesOfSizes(c.input_as_shape(0), c.input(1), c.input(2));
  ops::ConvolvedShape(ops::ConvolutionWindow(c), input, c.input(1), depthwise).MergedWith(c.input(2));
  return input;
}

Shape FilterGradShape(ShapeContext& c, bool depthwise) {
  const Shape filter = SizesShape(c, 1);
  ops::ConvolvedShape(ops::ConvolutionWindow(c), c.input(0), filter, depthwise).MergedWith(c.input(2));
  return filter;
}

OpDef ForwardDef(const Family& f, const char* doc) {
  return AddAttrs(OpDef(f.forward).Input("input: T").Input("filter: T").Output("output: T"))
      .ShapeRule([f](ShapeContext& c) { return ForwardShape(c, f.depthwise); })
      .Gradient([f](GradientContext& c) {
        c.SetInput(0, InputGradOf(c, f, c.input(0), c.input(1), c.grad()));
        c.SetInput(1, FilterGradOf(c, f, c.input(0), c.input(1), c.grad()));
      })
      .Doc(doc);
}

OpDef InputGradDef(const Family& f) {
  return AddAttrs(OpDef(f.input_grad)
                      .HostInput("input_sizes: int32")
                      .Input("filter: T")
                      .Input("out_backprop: T")
                      .Output("output: T"))
      .ShapeRule([f](ShapeContext& c) { return std::vector<Shape>{InputGradShape(c, f.depthwise)}; })
      .Gradient([f](GradientContext& c) {
        c.SetInput(1, FilterGradOf(c, f, c.grad(), c.input(1), c.input(2)));
        c.SetInput(2, ForwardOf(c, f, c.grad(), c.input(1)));
      })
      .Doc(std::string("Gradient of ") + f.forward + " by its input, whose shape is input_sizes" +
           (f.depthwise ? "." : ", or whose rows and columns."));
}

OpDef FilterGradDef(const Family& f) {
  return AddAttrs(OpDef(f.filter_grad)
                      .Input("input: T")
                      .HostInput("filter_sizes: int32")
                      .Input("out_backprop: T")
                      .Output("output: T"))
      .ShapeRule([f](ShapeContext& c) { return std::vector<Shape>{FilterGradShape(c, f.depthwise)}; })
      .Gradient([f](GradientContext& c) {
        c.SetInput(0, InputGradOf(c, f, c.input(0), c.grad(), c.input(2)));
        c.SetInput(2, ForwardOf(c, f, c.input(0), c.grad()));
      })
      .Doc(std::string("Gradient of ") + f.forward + " by its filter, whose shape is filter_sizes.");
}

OpDef FusedDef(const Family& f) {
  return AddAttrs(OpDef(f.fused).Input("input: T").Input("filter: T").Input("bias: T").Output("output: T"))
      .Attr("activation: string = ''")
      .ShapeRule([f](ShapeContext& c) { return ForwardShape(c, f.depthwise); })
      .NotDifferentiable("made when a plan is compiled, after gradients")
      .Doc(std::string(f.forward) + ", BiasAdd and the op named `activation`, if any, in one.");
}

OpDef FusedInputGradDef() {
  return AddAttrs(OpDef("_FusedDepthwiseConv2dNativeBackpropInput")
                      .HostInput("input_sizes: int32")
                      .Input("filter: T")
                      .Input("out_backprop: T")
                      .Input("activated: T")
                      .Output("output: T"))
      .Attr("gradient: string")
      .Attr("activation: string = ''")
      .ShapeRule([](ShapeContext& c) { return std::vector<Shape>{InputGradShape(c, true).MergedWith(c.input(3))}; })
      .NotDifferentiable("made when a plan is compiled, after gradients")
      .Doc(
          "DepthwiseConv2dNativeBackpropInput and the gradient op named `gradient` of an activation in one. "
          "`activated` "
          "is the activation's result, or its operand if `activation` names its op.");
}

OpDef FusedFilterGradDef() {
  return AddAttrs(OpDef("_FusedConv2DBackpropFilter")
                      .Input("input: T")
                      .HostInput("filter_sizes: int32")
                      .Input("out_backprop: T")
                      .Output("filter_backprop: T")
                      .Output("bias_backprop: T"))
      .ShapeRule([](ShapeContext& c) -> std::vector<Shape> {
        const Shape filter = FilterGradShape(c, false);
        return {filter, Shape{filter.dim(3)}};
      })
      .NotDifferentiable("made when a plan is compiled, after gradients")
      .Doc("Conv2DBackpropFilter and the BiasAddGrad of the same out_backprop in one.");
}

// Adds the convolution that `builder` has begun, whose inputs it has.
Output WithWindows(NodeBuilder builder, const ops::ConvolutionOptions& o) {
  std::vector<int64_t> paddings;
  if (o.padding == "EXPLICIT") {
    paddings = {0, 0, o.paddings[0], o.paddings[1], o.paddings[2], o.paddings[3], 0, 0};
  }
  return builder.Attr("strides", std::vector<int64_t>{1, o.strides[0], o.strides[1], 1})
      .Attr("dilations", std::vector<int64_t>{1, o.dilations[0], o.dilations[1], 1})
      .Attr("padding", o.padding)
      .Attr("explicit_paddings", paddings)
      .Finish1();
}

}  // namespace

void RegisterConvolutionOps(OpRegistry& registry) {
  registry.Register(ForwardDef(
      kFull, "Cross-correlation of images [batch, rows, columns, in] with filters [rows, columns, in / groups, out]."));
  registry.Register(ForwardDef(kDepthwise,
                               "Cross-correlation of each channel with filters of its own, [rows, columns, channels, "
                               "multiplier]; output channel c * multiplier + m."));
  for (const Family& family : {kFull, kDepthwise}) {
    registry.Register(InputGradDef(family));
    registry.Register(FilterGradDef(family));
    registry.Register(FusedDef(family));
  }
  registry.Register(FusedFilterGradDef());
  registry.Register(FusedInputGradDef());
}

namespace ops {

Output Conv2D(Output input, Output filter, const ConvolutionOptions& options, const NodeName& name) {
  return WithWindows(Op("Conv2D", {input, filter}, name), options);
}
Output Conv2DBackpropInput(const IntList& input_sizes, Output filter, Output out_backprop,
                           const ConvolutionOptions& options, const NodeName& name) {
  return WithWindows(Op("Conv2DBackpropInput", {input_sizes.In(filter.graph()), filter, out_backprop}, name), options);
}
Output DepthwiseConv2dNative(Output input, Output filter, const ConvolutionOptions& options, const NodeName& name) {
  return WithWindows(Op("DepthwiseConv2dNative", {input, filter}, name), options);
}

}  // namespace ops
}  // namespace cohort
