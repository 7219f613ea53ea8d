#include "cohort/ops/reduction.h"

#include <numeric>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/reduction_gradient.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

Output Reduce(const char* op, Output x, const IntList& axes, bool keep_dims, const NodeName& name) {
  return Op(op, {x}, name).Input(axes.In(x.graph())).Attr("keep_dims", keep_dims).Finish1();
}

Output ReduceAll(const char* op, Output x, const NodeName& name) {
  const int rank = x.shape().rank();
  if (rank < 0) return Reduce(op, x, Range(0, Rank(x), 1), false, name);
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return Reduce(op, x, axes, false, name);
}

Output ArgExtremum(const char* op, Output x, int axis, DType output_type, const NodeName& name) {
  return Op(op, {x, axis}, name).Attr("output_type", output_type).Finish1();
}

}  // namespace

Output Sum(Output x, const NodeName& name) { return ReduceAll("Sum", x, name); }
Output Sum(Output x, const IntList& axes, bool keep_dims, const NodeName& name) {
  return Reduce("Sum", x, axes, keep_dims, name);
}
Output Mean(Output x, const NodeName& name) { return ReduceAll("Mean", x, name); }
Output Mean(Output x, const IntList& axes, bool keep_dims, const NodeName& name) {
  return Reduce("Mean", x, axes, keep_dims, name);
}
Output Max(Output x, const NodeName& name) { return ReduceAll("Max", x, name); }
Output Max(Output x, const IntList& axes, bool keep_dims, const NodeName& name) {
  return Reduce("Max", x, axes, keep_dims, name);
}
Output Min(Output x, const NodeName& name) { return ReduceAll("Min", x, name); }
Output Min(Output x, const IntList& axes, bool keep_dims, const NodeName& name) {
  return Reduce("Min", x, axes, keep_dims, name);
}
Output Prod(Output x, const NodeName& name) { return ReduceAll("Prod", x, name); }
Output Prod(Output x, const IntList& axes, bool keep_dims, const NodeName& name) {
  return Reduce("Prod", x, axes, keep_dims, name);
}
Output All(Output x, const NodeName& name) { return ReduceAll("All", x, name); }
Output All(Output x, const IntList& axes, bool keep_dims, const NodeName& name) {
  return Reduce("All", x, axes, keep_dims, name);
}
Output Any(Output x, const NodeName& name) { return ReduceAll("Any", x, name); }
Output Any(Output x, const IntList& axes, bool keep_dims, const NodeName& name) {
  return Reduce("Any", x, axes, keep_dims, name);
}
Output ArgMax(Output x, int axis, DType output_type, const NodeName& name) {
  return ArgExtremum("ArgMax", x, axis, output_type, name);
}
Output ArgMin(Output x, int axis, DType output_type, const NodeName& name) {
  return ArgExtremum("ArgMin", x, axis, output_type, name);
}

namespace {

std::vector<Shape> ReductionShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  const bool keep_dims = c.attr<bool>("keep_dims");
  const auto axes = KnownIntegers(c, 1);
  if (!in.has_rank()) return {Shape::UnknownRank()};
  if (!axes) return {keep_dims ? Shape::UnknownDims(in.rank()) : Shape::UnknownRank()};
  return {ReducedShape(in, AxisMask(*axes, in.rank()), keep_dims)};
}

std::vector<Shape> ArgShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  const auto axis = KnownIntegers(c, 1);
  if (!in.has_rank()) return {Shape::UnknownRank()};
  if (in.rank() == 0) throw InvalidArgumentError("a scalar has no axis to search along");
  if (!axis) return {Shape::UnknownDims(in.rank() - 1)};
  if (axis->size() != 1) throw InvalidArgumentError(StrCat("dimension must be one integer; got ", axis->size()));
  return {ReducedShape(in, AxisMask(*axis, in.rank()), false)};
}

OpDef ReductionOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("input: T")
      .HostInput("reduction_indices: Tidx")
      .Output("output: T")
      .Attr("keep_dims: bool = false")
      .Attr("T: {bfloat16, half, float, double, uint8, int32, int64}")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .ShapeRule(ReductionShape)
      .Doc(doc);
}

OpDef LogicalReductionOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("input: bool")
      .HostInput("reduction_indices: Tidx")
      .Output("output: bool")
      .Attr("keep_dims: bool = false")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .ShapeRule(ReductionShape)
      .NotDifferentiable("a truth value")
      .Doc(doc);
}

OpDef ArgOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("input: T")
      .HostInput("dimension: Tidx")
      .Output("output: output_type")
      .Attr("T: {bfloat16, half, float, double, uint8, int32, int64, bool}")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Attr("output_type: {int32, int64} = DT_INT64")
      .ShapeRule(ArgShape)
      .NotDifferentiable("a position")
      .Doc(doc);
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterReductionOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(ReductionOp("Sum", "The sum over the axes `reduction_indices`.").Gradient(SumGradient));
  registry.Register(ReductionOp("Mean", "The mean over the axes; of no elements it is NaN. Integers are truncated.")
                        .Gradient(MeanGradient));
  registry.Register(ReductionOp("Max", "The largest element over the axes; NaN where there is one.")
                        .Gradient(ExtremumReductionGradient));
  registry.Register(ReductionOp("Min", "The smallest element over the axes; NaN where there is one.")
                        .Gradient(ExtremumReductionGradient));
  registry.Register(ReductionOp("Prod", "The product over the axes.").Gradient(ProdGradient));
  registry.Register(LogicalReductionOp("All", "Whether all elements over the axes are true."));
  registry.Register(LogicalReductionOp("Any", "Whether some element over the axes is true."));
  registry.Register(ArgOp("ArgMax", "Position of the first largest element along `dimension`."));
  registry.Register(ArgOp("ArgMin", "Position of the first smallest element along `dimension`."));
}

}  // namespace cohort
