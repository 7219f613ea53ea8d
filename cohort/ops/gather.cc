#include "cohort/ops/gather.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/dims.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/slice.h"

namespace cohort::ops {

Output Gather(Output params, const Operand& indices, int axis, int batch_dims, const NodeName& name) {
  return Op("GatherV2", {params, indices, axis}, name).Attr("batch_dims", batch_dims).Finish1();
}

Output OneHot(const Operand& indices, const Operand& depth, const Operand& on_value, const Operand& off_value, int axis,
              const NodeName& name) {
  return Op("OneHot", {indices, depth, on_value, off_value}, name).Attr("axis", axis).Finish1();
}

Output OneHot(Output indices, int depth, DType dtype, const NodeName& name) {
  Graph& graph = indices.graph();
  return OneHot(indices, depth, Const(graph, NumberTensor(dtype, 1)), Const(graph, NumberTensor(dtype, 0)), -1, name);
}

UniqueResult Unique(Output x, DType out_idx, const NodeName& name) {
  Node* node = Op("Unique", {x}, name).Attr("out_idx", out_idx).Finish();
  return {node->output(0), node->output(1)};
}

UniqueCountsResult UniqueWithCounts(Output x, DType out_idx, const NodeName& name) {
  Node* node = Op("UniqueWithCounts", {x}, name).Attr("out_idx", out_idx).Finish();
  return {node->output(0), node->output(1), node->output(2)};
}

Output Where(Output condition, const NodeName& name) { return Op("Where", {condition}, name).Finish1(); }

namespace {

std::vector<Shape> GatherShape(ShapeContext& c) {
  const Shape& params = c.input(0);
  const Shape& indices = c.input(1);
  const auto axis = KnownInteger(c, 2, "axis");
  if (!params.has_rank() || !indices.has_rank()) return UnknownShapes(1);
  const int64_t batch = c.attr<int64_t>("batch_dims");
  if (batch < -indices.rank() || batch > indices.rank()) {
    throw InvalidArgumentError(StrCat("batch_dims ", batch, " must be at most the rank of indices ", indices.rank()));
  }
  const int batch_dims = static_cast<int>(batch < 0 ? batch + indices.rank() : batch);
  if (params.rank() == 0) throw InvalidArgumentError("params must be at least 1 dimensional; got a scalar");
  if (!axis) return {Shape::UnknownDims(params.rank() + indices.rank() - 1 - batch_dims)};
  const int at = NormalizeAxis(*axis, params.rank());
  if (batch_dims < 0 || batch_dims > indices.rank() || batch_dims > at) {
    throw InvalidArgumentError(
        StrCat("batch_dims ", batch, " must be at most the axis ", at, " and the rank of indices ", indices.rank()));
  }
  const Shape shared = params.Sub(0, batch_dims).MergedWith(indices.Sub(0, batch_dims));
  return {shared.Concat(params.Sub(batch_dims, at))
              .Concat(indices.Sub(batch_dims, indices.rank()))
              .Concat(params.Sub(at + 1, params.rank()))};
}

// The product of elements [begin, end) of a shape vector.
Output Product(Output shape, int begin, int end) { return Prod(Slice(shape, {begin}, {end - begin})); }

// Any axis and batch_dims. With params seen as [batch, outer, dim, inner], indices as [batch, n] and the
// gradient as [batch, outer, n, inner]: rows (batch, n) are summed into rows (batch, dim).
void DenseGatherGradient(GradientContext& c, int axis, int batch_dims, int params_rank, int indices_rank) {
  Graph& graph = c.graph();
  const Output params_shape = ShapeOf(c.input(0)), indices_shape = ShapeOf(c.input(1));
  const Output batch = Product(params_shape, 0, batch_dims);
  const Output outer = Product(params_shape, batch_dims, axis);
  const Output dim = Product(params_shape, axis, axis + 1);
  const Output inner = Product(params_shape, axis + 1, params_rank);
  const Output n = Product(indices_shape, batch_dims, indices_rank);
  const Output rows = Reshape(Transpose(Reshape(c.grad(), Pack({batch, outer, n, inner})), {0, 2, 1, 3}),
                              Pack({Mul(batch, n), outer, inner}));
  const DType index = c.input(1).dtype();
  const Output starts = Mul(Range(Const(graph, 0), batch, Const(graph, 1)), dim);
  const Output ids = Add(Reshape(c.input(1), Pack({batch, n})), Cast(ExpandDims(starts, 1), index));
  const Output sums = UnsortedSegmentSum(rows, Reshape(ids, {-1}), Mul(batch, dim));
  const Output moved = Transpose(Reshape(sums, Pack({batch, dim, outer, inner})), {0, 2, 1, 3});
  c.SetInput(0, Reshape(moved, params_shape));
}

void GatherGradient(GradientContext& c) {
  const Output params = c.input(0), indices = c.input(1);
  const Node& axis_node = *c.input(2).node;
  if (axis_node.op_name() != "Const" || !params.shape().has_rank() || !indices.shape().has_rank()) {
    throw InvalidArgumentError("the gradient of GatherV2 needs a constant axis and known ranks");
  }
  const int axis = NormalizeAxis(IntegerScalar(axis_node.attr<Tensor>("value"), "axis"), params.shape().rank());
  int batch_dims = static_cast<int>(c.attr<int64_t>("batch_dims"));
  if (batch_dims < 0) batch_dims += indices.shape().rank();
  if (axis != 0 || batch_dims != 0) {
    return DenseGatherGradient(c, axis, batch_dims, params.shape().rank(), indices.shape().rank());
  }
  Graph& graph = c.graph();
  const Shape& shape = params.shape();
  const Output dense_shape = ShapeValue(params);
  Output values = c.grad(), flat = indices;
  if (indices.shape().rank() != 1) {
    flat = Reshape(indices, {-1});
    const Shape row = shape.Sub(1, shape.rank());
    const int64_t n = indices.shape().num_elements();
    values = row.IsFullyDefined() && n >= 0
                 ? Reshape(values, ShapeConst(graph, Shape{n}.Concat(row)))
                 : Reshape(values, Concat({ExpandDims(Size(indices), 0), Slice(ShapeOf(params), {1}, {-1})}, 0));
  }
  c.SetInput(0, Gradient(values, flat, dense_shape));
}

std::vector<Shape> OneHotShape(ShapeContext& c) {
  const Shape& indices = c.input(0);
  const auto depth = KnownInteger(c, 1, "depth");
  if (depth && *depth < 0) throw InvalidArgumentError(StrCat("depth must be >= 0; got ", *depth));
  if (!indices.has_rank()) return UnknownShapes(1);
  const int axis = NormalizeAxis(c.attr<int64_t>("axis"), indices.rank() + 1);
  return {indices.Sub(0, axis).Concat(Shape{depth.value_or(-1)}).Concat(indices.Sub(axis, indices.rank()))};
}

std::vector<Shape> UniqueShape(ShapeContext& c) { return {Shape::UnknownDims(1), c.WithRank(0, 1)}; }
std::vector<Shape> UniqueCountsShape(ShapeContext& c) {
  return {Shape::UnknownDims(1), c.WithRank(0, 1), Shape::UnknownDims(1)};
}
std::vector<Shape> WhereShape(ShapeContext& c) { return {Shape{-1, c.input(0).has_rank() ? c.input(0).rank() : -1}}; }

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterGatherOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("GatherV2")
                        .Input("params: Tparams")
                        .Input("indices: Tindices")
                        .HostInput("axis: Taxis")
                        .Output("output: Tparams")
                        .Attr("batch_dims: int = 0")
                        .Attr("Tparams: type")
                        .Attr("Tindices: {int32, int64}")
                        .Attr("Taxis: {int32, int64}")
                        .ShapeRule(GatherShape)
                        .Gradient(GatherGradient)
                        .Doc("The slices of params at the indices along `axis`. The gradient for axis 0 is sparse."));
  registry.Register(
      OpDef("OneHot")
          .Input("indices: TI")
          .HostInput("depth: int32")
          .Input("on_value: T")
          .Input("off_value: T")
          .Output("output: T")
          .Attr("axis: int = -1")
          .Attr("T: type")
          .Attr("TI: {uint8, int32, int64} = DT_INT64")
          .ShapeRule(OneHotShape)
          .NotDifferentiable("made from positions; on_value and off_value are taken as constants")
          .Doc("on_value at each index along a new dimension `axis` of length `depth`, off_value elsewhere."));
  registry.Register(OpDef("Unique")
                        .Input("x: T")
                        .Output("y: T")
                        .Output("idx: out_idx")
                        .Attr("T: type")
                        .Attr("out_idx: {int32, int64} = DT_INT32")
                        .ShapeRule(UniqueShape)
                        .DataDependentShape()
                        .NotDifferentiable("positions")
                        .Doc("The different values of the vector x in order of first appearance, and for each element "
                             "which it is."));
  registry.Register(OpDef("UniqueWithCounts")
                        .Input("x: T")
                        .Output("y: T")
                        .Output("idx: out_idx")
                        .Output("count: out_idx")
                        .Attr("T: type")
                        .Attr("out_idx: {int32, int64} = DT_INT32")
                        .ShapeRule(UniqueCountsShape)
                        .DataDependentShape()
                        .NotDifferentiable("positions")
                        .Doc("Unique, and how often each value appears."));
  registry.Register(OpDef("Where")
                        .Input("input: T")
                        .Output("index: int64")
                        .Attr("T: {float, double, int32, uint8, int64, bfloat16, bool} = DT_BOOL")
                        .ShapeRule(WhereShape)
                        .DataDependentShape()
                        .NotDifferentiable("positions")
                        .Doc("The positions of elements that are true or not zero, one row each."));
}

}  // namespace cohort
