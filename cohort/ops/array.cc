#include "cohort/ops/array.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/broadcast_gradient.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

std::vector<Shape> ReshapeShape(ShapeContext& c) {
  c.WithRank(1, 1);
  const Shape wanted = c.input_as_shape(1);
  if (!wanted.has_rank() || !c.input_value(1)) return {wanted};
  if (c.input(0).num_elements() >= 0) return {ResolveReshape(c.input(0), wanted)};
  return {wanted};
}

std::vector<Shape> ExpandDimsShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  const auto axis = KnownIntegers(c, 1);
  if (!in.has_rank()) return {Shape::UnknownRank()};
  if (!axis) return {Shape::UnknownDims(in.rank() + 1)};
  if (axis->size() != 1) throw InvalidArgumentError(StrCat("dim must be one integer; got ", axis->size()));
  const int at = NormalizeAxis((*axis)[0], in.rank() + 1, "dim");
  return {in.Sub(0, at).Concat(Shape{1}).Concat(in.Sub(at, in.rank()))};
}

std::vector<Shape> SqueezeShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  const auto& axes = c.attr<std::vector<int64_t>>("squeeze_dims");
  if (!in.has_rank()) return {Shape::UnknownRank()};
  if (axes.empty() && !in.IsFullyDefined()) return {Shape::UnknownRank()};
  return {SqueezedShape(in, axes)};
}

std::vector<Shape> BroadcastToShape(ShapeContext& c) {
  c.WithRank(1, 1);
  const Shape target = c.input_as_shape(1);
  const Shape& in = c.input(0);
  if (!target.has_rank() || !in.has_rank()) return {target};
  if (in.rank() > target.rank()) {
    throw InvalidArgumentError(StrCat("a tensor of shape ", in, " does not broadcast to ", target));
  }
  BroadcastShapes(in, target);
  return {target};
}

void ReshapeGradient(GradientContext& c) { c.SetInput(0, ReshapeLike(c.grad(), c.input(0))); }

void IdentityNGradient(GradientContext& c) {
  for (int i = 0; i < c.node().num_outputs(); ++i) c.SetInput(i, c.raw_grad(i));
}

std::vector<Shape> AllShapes(ShapeContext& c) {
  std::vector<Shape> shapes;
  for (int i = 0; i < c.num_inputs(); ++i) shapes.push_back(c.input(i));
  return shapes;
}

void CastGradient(GradientContext& c) {
  const DType source = c.input(0).dtype();
  if (IsFloating(source) && IsFloating(c.output(0).dtype())) c.SetInput(0, Cast(c.grad(), source));
}

std::vector<Shape> GradientArgsShape(ShapeContext&) { return {Shape::UnknownDims(1), Shape::UnknownDims(1)}; }

}  // namespace

Shape ResolveReshape(const Shape& from, const Shape& wanted) {
  Shape result = wanted;
  int unknown = -1;
  int64_t product = 1;
  for (int i = 0; i < wanted.rank(); ++i) {
    if (wanted.dim(i) >= 0) {
      if (__builtin_mul_overflow(product, wanted.dim(i), &product)) {
        throw InvalidArgumentError(
            StrCat("cannot reshape a tensor of shape ", from, " to ", wanted, ", whose elements cannot be counted"));
      }
    } else if (unknown < 0) {
      unknown = i;
    } else {
      throw InvalidArgumentError(StrCat("only one dimension of a new shape may be -1; got ", wanted));
    }
  }
  const int64_t elements = from.num_elements();
  if (unknown >= 0 && product > 0 && elements % product == 0) {
    result.set_dim(unknown, elements / product);
  } else if (unknown >= 0 || product != elements) {
    throw InvalidArgumentError(StrCat("cannot reshape a tensor of shape ", from, " (", elements, " elements) to ",
                                      wanted, " (", product, unknown >= 0 ? " times n elements)" : " elements)"));
  }
  return result;
}

Shape SqueezedShape(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<bool> drop(static_cast<size_t>(shape.rank()), false);
  for (int i = 0; axes.empty() && i < shape.rank(); ++i) drop[static_cast<size_t>(i)] = shape.dim(i) == 1;
  for (const int64_t axis : axes) {
    const int i = NormalizeAxis(axis, shape.rank(), "squeeze dimension");
    if (shape.dim(i) > 1 || shape.dim(i) == 0) {
      throw InvalidArgumentError(StrCat("cannot squeeze dimension ", axis, " of shape ", shape, ": it is not 1"));
    }
    drop[static_cast<size_t>(i)] = true;
  }
  return ReducedShape(shape, drop, false);
}

Output Identity(Output input, const NodeName& name) { return Op("Identity", {input}, name).Finish1(); }

std::vector<Output> IdentityN(const std::vector<Output>& inputs, const NodeName& name) {
  if (inputs.empty()) throw InvalidArgumentError("[ops] IdentityN needs at least one input");
  Node* node = inputs[0].graph().Op("IdentityN").Name(name).Inputs(inputs).Finish();
  std::vector<Output> outputs;
  for (int i = 0; i < node->num_outputs(); ++i) outputs.push_back(node->output(i));
  return outputs;
}

Output StopGradient(Output input, const NodeName& name) { return Op("StopGradient", {input}, name).Finish1(); }
Output ShapeOf(Output input, DType out_type, const NodeName& name) {
  return Op("Shape", {input}, name).Attr("out_type", out_type).Finish1();
}
Output Size(Output input, DType out_type, const NodeName& name) {
  return Op("Size", {input}, name).Attr("out_type", out_type).Finish1();
}
Output Rank(Output input, const NodeName& name) { return Op("Rank", {input}, name).Finish1(); }
Output Reshape(Output input, const IntList& shape, const NodeName& name) {
  return Op("Reshape", {input}, name).Input(shape.In(input.graph())).Finish1();
}
Output ExpandDims(Output input, int axis, const NodeName& name) {
  return Op("ExpandDims", {input, axis}, name).Finish1();
}
Output Squeeze(Output input, const std::vector<int64_t>& axes, const NodeName& name) {
  return Op("Squeeze", {input}, name).Attr("squeeze_dims", axes).Finish1();
}
Output Cast(Output input, DType dtype, const NodeName& name) {
  if (input.dtype() == dtype) return input;
  return Op("Cast", {input}, name).Attr("DstT", dtype).Finish1();
}
Output BroadcastTo(Output input, const IntList& shape, const NodeName& name) {
  return Op("BroadcastTo", {input}, name).Input(shape.In(input.graph())).Finish1();
}

namespace {

void RegisterIdentities(OpRegistry& registry) {
  const auto forward = [](GradientContext& c) { c.SetInput(0, c.raw_grad()); };
  registry.Register(OpDef("Identity")
                        .Input("input: T")
                        .Output("output: T")
                        .Attr("T: type")
                        .ShapeRule(UnchangedShape)
                        .Elementwise()
                        .Gradient(forward)
                        .Doc("The input, under another name."));
  registry.Register(OpDef("IdentityN")
                        .Input("input: T")
                        .Output("output: T")
                        .Attr("T: list(type) >= 1")
                        .ShapeRule(AllShapes)
                        .Gradient(IdentityNGradient)
                        .Doc("All inputs, unchanged, once all of them are there."));
  registry.Register(OpDef("StopGradient")
                        .Input("input: T")
                        .Output("output: T")
                        .Attr("T: type")
                        .ShapeRule(UnchangedShape)
                        .Elementwise()
                        .NotDifferentiable("made to stop gradients")
                        .Doc("The input; gradients end here."));
  registry.Register(OpDef("Cast")
                        .Input("x: SrcT")
                        .Output("y: DstT")
                        .Attr("SrcT: type")
                        .Attr("DstT: type")
                        .Attr("Truncate: bool = false")
                        .ShapeRule(UnchangedShape)
                        .Elementwise()
                        .Gradient(CastGradient)
                        .Doc("x converted to DstT. Floats to integers lose their fraction; to bool, nonzero is true."));
}

void RegisterShapeQueries(OpRegistry& registry) {
  registry.Register(OpDef("Shape")
                        .Input("input: T")
                        .HostOutput("output: out_type")
                        .Attr("T: type")
                        .Attr("out_type: {int32, int64} = DT_INT32")
                        .ShapeRule([](ShapeContext& c) {
                          const int rank = c.input(0).rank();
                          return std::vector<Shape>{Shape{rank >= 0 ? rank : -1}};
                        })
                        .ReadsShapeOnly()
                        .NotDifferentiable("a shape")
                        .Doc("The shape of the input as a vector."));
  registry.Register(OpDef("Size")
                        .Input("input: T")
                        .HostOutput("output: out_type")
                        .Attr("T: type")
                        .Attr("out_type: {int32, int64} = DT_INT32")
                        .ShapeRule(ScalarShape)
                        .ReadsShapeOnly()
                        .NotDifferentiable("a shape")
                        .Doc("The number of elements of the input."));
  registry.Register(OpDef("Rank")
                        .Input("input: T")
                        .HostOutput("output: int32")
                        .Attr("T: type")
                        .ShapeRule(ScalarShape)
                        .ReadsShapeOnly()
                        .NotDifferentiable("a shape")
                        .Doc("The number of dimensions of the input."));
  registry.Register(
      OpDef("BroadcastGradientArgs")
          .HostInput("s0: T")
          .HostInput("s1: T")
          .HostOutput("r0: T")
          .HostOutput("r1: T")
          .Attr("T: {int32, int64} = DT_INT32")
          .ShapeRule(GradientArgsShape)
          .NotDifferentiable("axes")
          .Doc("For operands of shapes s0 and s1: the axes of their broadcast shape over which the gradient "
               "of each has to be summed."));
}

void RegisterReshapes(OpRegistry& registry) {
  registry.Register(OpDef("Reshape")
                        .Input("tensor: T")
                        .HostInput("shape: Tshape")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("Tshape: {int32, int64} = DT_INT32")
                        .ShapeRule(ReshapeShape)
                        .Gradient(ReshapeGradient)
                        .Doc("The elements in a new shape, of which one dimension may be -1 (what is left)."));
  registry.Register(OpDef("ExpandDims")
                        .Input("input: T")
                        .HostInput("dim: Tdim")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("Tdim: {int32, int64} = DT_INT32")
                        .ShapeRule(ExpandDimsShape)
                        .Gradient(ReshapeGradient)
                        .Doc("The input with a dimension of 1 before axis `dim`, in [-rank - 1, rank]."));
  registry.Register(OpDef("Squeeze")
                        .Input("input: T")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("squeeze_dims: list(int) >= 0 = []")
                        .ShapeRule(SqueezeShape)
                        .Gradient(ReshapeGradient)
                        .Doc("The input without the dimensions `squeeze_dims`, or without all dimensions of 1."));
  registry.Register(OpDef("BroadcastTo")
                        .Input("input: T")
                        .HostInput("shape: Tidx")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("Tidx: {int32, int64} = DT_INT32")
                        .ShapeRule(BroadcastToShape)
                        .Gradient([](GradientContext& c) { c.SetInput(0, SumToShapeOf(c.grad(), c.input(0))); })
                        .Doc("The input repeated along dimensions of 1 and new leading ones until it has `shape`."));
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterArrayOps(OpRegistry& registry) {
  ops::RegisterIdentities(registry);
  ops::RegisterShapeQueries(registry);
  ops::RegisterReshapes(registry);
}

}  // namespace cohort
