#include "cohort/ops/layout.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {

std::vector<int> CheckedPermutation(const std::vector<int64_t>& perm, int rank) {
  if (static_cast<int>(perm.size()) != rank) {
    throw InvalidArgumentError(
        StrCat("a permutation of ", rank, " dimensions must have as many elements; got ", perm.size()));
  }
  std::vector<int> result;
  std::vector<bool> seen(perm.size(), false);
  for (const int64_t axis : perm) {
    const int at = NormalizeAxis(axis, rank, "permutation element");
    if (seen[static_cast<size_t>(at)])
      throw InvalidArgumentError(StrCat("permutation element ", axis, " is given twice"));
    seen[static_cast<size_t>(at)] = true;
    result.push_back(at);
  }
  return result;
}

Output Transpose(Output x, const IntList& perm, const NodeName& name) {
  return Op("Transpose", {x}, name).Input(perm.In(x.graph())).Finish1();
}
Output InvertPermutation(Output x, const NodeName& name) { return Op("InvertPermutation", {x}, name).Finish1(); }
Output Reverse(Output tensor, const IntList& axes, const NodeName& name) {
  return Op("ReverseV2", {tensor}, name).Input(axes.In(tensor.graph())).Finish1();
}

namespace {

std::vector<Shape> TransposeShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  c.WithRank(1, 1);
  const auto perm = KnownIntegers(c, 1);
  if (!perm) return {x.has_rank() ? Shape::UnknownDims(x.rank()) : x};
  if (!x.has_rank()) return {Shape::UnknownDims(static_cast<int>(perm->size()))};
  Shape result;
  for (const int axis : CheckedPermutation(*perm, x.rank())) result.AddDim(x.dim(axis));
  return {result};
}

void TransposeGradient(GradientContext& c) {
  const Node& perm = *c.input(1).node;
  if (perm.op_name() != "Const") {
    c.SetInput(0, Transpose(c.grad(), InvertPermutation(c.input(1))));
    return;
  }
  const std::vector<int64_t> values = IntegerValues(perm.attr<Tensor>("value"));
  const int rank = static_cast<int>(values.size());
  std::vector<int64_t> inverse(values.size());
  for (int i = 0; i < rank; ++i) {
    inverse[static_cast<size_t>(NormalizeAxis(values[static_cast<size_t>(i)], rank))] = i;
  }
  c.SetInput(0, Transpose(c.grad(), inverse));
}

std::vector<Shape> ReverseShape(ShapeContext& c) {
  c.WithRank(1, 1);
  const auto axes = KnownIntegers(c, 1);
  if (axes && c.input(0).has_rank()) AxisMask(*axes, c.input(0).rank());
  return {c.input(0)};
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterLayoutOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("Transpose")
                        .Input("x: T")
                        .HostInput("perm: Tperm")
                        .Output("y: T")
                        .Attr("T: type")
                        .Attr("Tperm: {int32, int64} = DT_INT32")
                        .ShapeRule(TransposeShape)
                        .Gradient(TransposeGradient)
                        .Doc("x with its dimensions permuted: dimension i of y is dimension perm[i] of x."));
  registry.Register(OpDef("InvertPermutation")
                        .Input("x: T")
                        .Output("y: T")
                        .Attr("T: {int32, int64} = DT_INT32")
                        .ShapeRule([](ShapeContext& c) { return std::vector<Shape>{c.WithRank(0, 1)}; })
                        .NotDifferentiable("positions")
                        .Doc("The permutation that undoes x: y[x[i]] = i."));
  registry.Register(OpDef("ReverseV2")
                        .Input("tensor: T")
                        .HostInput("axis: Tidx")
                        .Output("output: T")
                        .Attr("Tidx: {int32, int64} = DT_INT32")
                        .Attr("T: type")
                        .ShapeRule(ReverseShape)
                        .Gradient([](GradientContext& c) {
                          c.SetInput(0, c.graph().Op("ReverseV2").Input(c.grad()).Input(c.input(1)).Finish1());
                        })
                        .Doc("The tensor backwards along the axes."));
}

}  // namespace cohort
