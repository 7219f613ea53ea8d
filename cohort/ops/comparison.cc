#include "cohort/ops/comparison.h"

#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
Output Equal(const Operand& x, const Operand& y, const NodeName& name) { return Op("Equal", {x, y}, name).Finish1(); }
Output NotEqual(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("NotEqual", {x, y}, name).Finish1();
}
Output Less(const Operand& x, const Operand& y, const NodeName& name) { return Op("Less", {x, y}, name).Finish1(); }
Output LessEqual(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("LessEqual", {x, y}, name).Finish1();
}
Output Greater(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("Greater", {x, y}, name).Finish1();
}
Output GreaterEqual(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("GreaterEqual", {x, y}, name).Finish1();
}
Output LogicalAnd(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("LogicalAnd", {x, y}, name).Finish1();
}
Output LogicalOr(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("LogicalOr", {x, y}, name).Finish1();
}
Output LogicalNot(Output x, const NodeName& name) { return Op("LogicalNot", {x}, name).Finish1(); }

namespace {

constexpr const char* kTruth = "a truth value";

OpDef OrderOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("x: T")
      .Input("y: T")
      .Output("z: bool")
      .Attr("T: realnumbertype")
      .ShapeRule(BroadcastShape)
      .Broadcasting()
      .NotDifferentiable(kTruth)
      .Doc(doc);
}

// With incompatible_shape_error = false TensorFlow answers with one scalar where shapes do not broadcast.
std::vector<Shape> EqualityShape(ShapeContext& c) {
  if (c.attr<bool>("incompatible_shape_error")) return BroadcastShape(c);
  if (!c.input(0).IsFullyDefined() || !c.input(1).IsFullyDefined()) return UnknownShapes(1);
  if (!CanBroadcast(c.input(0), c.input(1))) return {Shape()};
  return BroadcastShape(c);
}

OpDef EqualityOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("x: T")
      .Input("y: T")
      .Output("z: bool")
      .Attr("T: type")
      .Attr("incompatible_shape_error: bool = true")
      .ShapeRule(EqualityShape)
      .Broadcasting()
      .NotDifferentiable(kTruth)
      .Doc(doc);
}

OpDef LogicalOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("x: bool")
      .Input("y: bool")
      .Output("z: bool")
      .ShapeRule(BroadcastShape)
      .Broadcasting()
      .NotDifferentiable(kTruth)
      .Doc(doc);
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterComparisonOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(EqualityOp("Equal", "Whether x is y."));
  registry.Register(EqualityOp("NotEqual", "Whether x is not y; true for NaN."));
  registry.Register(OrderOp("Less", "x < y."));
  registry.Register(OrderOp("LessEqual", "x <= y."));
  registry.Register(OrderOp("Greater", "x > y."));
  registry.Register(OrderOp("GreaterEqual", "x >= y."));
  registry.Register(LogicalOp("LogicalAnd", "x and y."));
  registry.Register(LogicalOp("LogicalOr", "x or y."));
  registry.Register(OpDef("LogicalNot")
                        .Input("x: bool")
                        .Output("y: bool")
                        .ShapeRule(UnchangedShape)
                        .Elementwise()
                        .NotDifferentiable("a truth value")
                        .Doc("not x."));
}

}  // namespace cohort
