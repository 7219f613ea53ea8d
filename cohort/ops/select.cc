#include "cohort/ops/select.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/broadcast_gradient.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {

Output SelectV2(const Operand& condition, const Operand& t, const Operand& e, const NodeName& name) {
  return Op("SelectV2", {condition, t, e}, name).Finish1();
}
Output Select(const Operand& condition, const Operand& t, const Operand& e, const NodeName& name) {
  return Op("Select", {condition, t, e}, name).Finish1();
}
Output ClipByValue(const Operand& t, const Operand& low, const Operand& high, const NodeName& name) {
  return Op("ClipByValue", {t, low, high}, name).Finish1();
}

namespace {

std::vector<Shape> SelectV2Shape(ShapeContext& c) {
  return {BroadcastShapes(c.input(0), BroadcastShapes(c.input(1), c.input(2)))};
}

std::vector<Shape> SelectShape(ShapeContext& c) {
  const Shape value = c.input(1).MergedWith(c.input(2));
  const Shape& condition = c.input(0);
  if (!value.has_rank() || !condition.has_rank() || condition.IsScalar()) return {value};
  const bool rows = condition.rank() == 1 && value.rank() >= 1;
  if (!condition.IsCompatibleWith(rows ? value.Sub(0, 1) : value)) {
    throw InvalidArgumentError(StrCat("the condition of shape ", condition,
                                      " must be a scalar, one flag a row or have the ", "shape of the values, ",
                                      value));
  }
  return {value};
}

std::vector<Shape> ClipShape(ShapeContext& c) {
  const Shape& t = c.input(0);
  for (int i = 1; i < 3; ++i) {
    if (!c.input(i).IsScalar() && !c.input(i).IsCompatibleWith(t)) {
      throw InvalidArgumentError(StrCat("bounds must be scalars or have the shape ", t, "; got ", c.input(i)));
    }
  }
  return {t};
}

void SelectV2Gradient(GradientContext& c) {
  const Output g = c.grad();
  const Output zero = ScalarLike(g, 0);
  c.SetInput(1, SumToShapeOf(SelectV2(c.input(0), g, zero), c.input(1)));
  c.SetInput(2, SumToShapeOf(SelectV2(c.input(0), zero, g), c.input(2)));
}

void SelectGradient(GradientContext& c) {
  const Output g = c.grad();
  const Output zeros = ZerosLike(g);
  c.SetInput(1, Select(c.input(0), g, zeros));
  c.SetInput(2, Select(c.input(0), zeros, g));
}

void ClipGradient(GradientContext& c) {
  const Output g = c.grad(), t = c.input(0);
  const Output zero = ScalarLike(g, 0);
  const Output below = Less(t, c.input(1)), above = Greater(t, c.input(2));
  c.SetInput(0, SelectV2(LogicalOr(below, above), zero, g));
  c.SetInput(1, SumToShapeOf(SelectV2(below, g, zero), c.input(1)));
  c.SetInput(2, SumToShapeOf(SelectV2(above, g, zero), c.input(2)));
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterSelectOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("SelectV2")
                        .Input("condition: bool")
                        .Input("t: T")
                        .Input("e: T")
                        .Output("output: T")
                        .Attr("T: type")
                        .ShapeRule(SelectV2Shape)
                        .Broadcasting()
                        .Gradient(SelectV2Gradient)
                        .Doc("t where the condition holds, e elsewhere; all three broadcast."));
  registry.Register(OpDef("Select")
                        .Input("condition: bool")
                        .Input("t: T")
                        .Input("e: T")
                        .Output("output: T")
                        .Attr("T: type")
                        .ShapeRule(SelectShape)
                        .Gradient(SelectGradient)
                        .Doc("t where the condition holds, e elsewhere. The condition is a scalar, one flag "
                             "a row, or has the "
                             "shape of t and e."));
  registry.Register(OpDef("ClipByValue")
                        .Input("t: T")
                        .Input("clip_value_min: T")
                        .Input("clip_value_max: T")
                        .Output("output: T")
                        .Attr("T: {bfloat16, half, float, double, uint8, int32, int64}")
                        .ShapeRule(ClipShape)
                        .Broadcasting()
                        .Gradient(ClipGradient)
                        .Doc("t, but not below clip_value_min and not above clip_value_max."));
}

}  // namespace cohort
