#include "cohort/ops/constant.h"

#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

std::vector<Shape> FillShape(ShapeContext& c) {
  c.WithRank(0, 1);
  c.WithRank(1, 0);
  return {c.input_as_shape(0)};
}

std::vector<Shape> RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) c.WithRank(i, 0);
  const auto start = c.input_value(0), limit = c.input_value(1), delta = c.input_value(2);
  if (!start || !limit || !delta) return {Shape::UnknownDims(1)};
  return {Shape{RangeLength(*start, *limit, *delta)}};
}

}  // namespace

Output Const(Graph& graph, const Tensor& value, const NodeName& name) {
  return graph.Op("Const").Name(name).Attr("value", value).Attr("dtype", value.dtype()).Finish1();
}

Tensor NumberTensor(DType dtype, Number value) {
  std::optional<Tensor> tensor = value.As(dtype);
  if (!tensor) {
    throw InvalidArgumentError(
        StrCat("[ops] expected a number that ", dtype, " can hold; got ", value.ToString(), " (", value.dtype(), ")"));
  }
  return *std::move(tensor);
}

Output ScalarLike(Output like, Number value, const NodeName& name) {
  return Const(like.graph(), NumberTensor(like.dtype(), value), name);
}

Output IntVector(Graph& graph, const std::vector<int64_t>& values, const NodeName& name) {
  std::vector<int32_t> narrow;
  for (const int64_t value : values) {
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
      return Const(graph, Tensor::Vector(values), name);
    }
    narrow.push_back(static_cast<int32_t>(value));
  }
  return Const(graph, Tensor::Vector(narrow), name);
}

Output ShapeConst(Graph& graph, const Shape& shape, const NodeName& name) {
  return IntVector(graph, std::vector<int64_t>(shape.dims().begin(), shape.dims().end()), name);
}

Output Placeholder(Graph& graph, DType dtype, const Shape& shape, const NodeName& name) {
  return graph.Op("Placeholder").Name(name).Attr("dtype", dtype).Attr("shape", shape).Finish1();
}

Output PlaceholderWithDefault(Output input, const Shape& shape, const NodeName& name) {
  return input.graph().Op("PlaceholderWithDefault").Name(name).Input(input).Attr("shape", shape).Finish1();
}

Output Fill(Output dims, const Operand& value, const NodeName& name) {
  return Op("Fill", {dims, value}, name).Finish1();
}
Output Range(const Operand& start, const Operand& limit, const Operand& delta, const NodeName& name) {
  return Op("Range", {start, limit, delta}, name).Finish1();
}
Output ZerosLike(Output x, const NodeName& name) { return Op("ZerosLike", {x}, name).Finish1(); }
Output OnesLike(Output x, const NodeName& name) { return Op("OnesLike", {x}, name).Finish1(); }

}  // namespace cohort::ops

namespace cohort {

using ops::UnchangedShape;

namespace {

void RegisterConstantsAndPlaceholders(OpRegistry& registry) {
  registry.Register(OpDef("Const")
                        .Output("output: dtype")
                        .Attr("value: tensor")
                        .Attr("dtype: type")
                        .ShapeRule([](ShapeContext& c) { return std::vector<Shape>{c.attr<Tensor>("value").shape()}; })
                        .ReturnsKeptValue()
                        .NotDifferentiable("a constant has no inputs")
                        .Doc("The tensor in the attribute `value`."));
  registry.Register(OpDef("Placeholder")
                        .Output("output: dtype")
                        .Attr("dtype: type")
                        .Attr("shape: shape = { unknown_rank: true }")
                        .ShapeRule([](ShapeContext& c) { return std::vector<Shape>{c.attr<Shape>("shape")}; })
                        .NotDifferentiable("a placeholder has no inputs")
                        .Doc("A value that must be fed at each step; running it unfed is an error."));
  registry.Register(OpDef("PlaceholderWithDefault")
                        .Input("input: dtype")
                        .Output("output: dtype")
                        .Attr("dtype: type")
                        .Attr("shape: shape")
                        .ShapeRule([](ShapeContext& c) {
                          const Shape& declared = c.attr<Shape>("shape");
                          c.input(0).MergedWith(declared);
                          return std::vector<Shape>{declared};
                        })
                        .Gradient([](GradientContext& c) { c.SetInput(0, c.raw_grad()); })
                        .Doc("The input, unless another value is fed for it."));
}

void RegisterFilledTensors(OpRegistry& registry) {
  registry.Register(OpDef("Fill")
                        .HostInput("dims: index_type")
                        .Input("value: T")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("index_type: {int32, int64} = DT_INT32")
                        .ShapeRule(ops::FillShape)
                        .Gradient([](GradientContext& c) {
                          Graph& graph = c.graph();
                          const Output g = c.grad();
                          const Output axes = graph.Op("Range")
                                                  .Input(ops::Const(graph, 0))
                                                  .Input(graph.Op("Rank").Input(g).Finish1())
                                                  .Input(ops::Const(graph, 1))
                                                  .Finish1();
                          c.SetInput(1, graph.Op("Sum").Input(g).Input(axes).Finish1());
                        })
                        .Doc("A tensor of shape `dims` in which every element is the scalar `value`."));
  registry.Register(OpDef("Range")
                        .HostInput("start: Tidx")
                        .HostInput("limit: Tidx")
                        .HostInput("delta: Tidx")
                        .Output("output: Tidx")
                        .Attr("Tidx: {float, double, int32, int64} = DT_INT32")
                        .ShapeRule(ops::RangeShape)
                        .NotDifferentiable("a sequence of numbers made from its bounds")
                        .Doc("The numbers start, start + delta, ... up to but without `limit`."));
  registry.Register(OpDef("ZerosLike")
                        .Input("x: T")
                        .Output("y: T")
                        .Attr("T: type")
                        .ShapeRule(UnchangedShape)
                        .Elementwise()
                        .NotDifferentiable("the value does not depend on that of the input")
                        .Doc("Zeros (empty strings, false) in the shape and dtype of x."));
  registry.Register(OpDef("OnesLike")
                        .Input("x: T")
                        .Output("y: T")
                        .Attr("T: {bfloat16, half, float, double, int8, uint8, int16, int32, int64, bool}")
                        .ShapeRule(UnchangedShape)
                        .Elementwise()
                        .NotDifferentiable("the value does not depend on that of the input")
                        .Doc("Ones (true) in the shape and dtype of x."));
}

}  // namespace

void RegisterConstantOps(OpRegistry& registry) {
  RegisterConstantsAndPlaceholders(registry);
  RegisterFilledTensors(registry);
}

}  // namespace cohort
