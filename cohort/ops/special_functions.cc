#include "cohort/ops/special_functions.h"

#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/broadcast_gradient.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/unary.h"

namespace cohort::ops {

Output Asin(Output x, const NodeName& name) { return Op("Asin", {x}, name).Finish1(); }
Output Acos(Output x, const NodeName& name) { return Op("Acos", {x}, name).Finish1(); }
Output Atan(Output x, const NodeName& name) { return Op("Atan", {x}, name).Finish1(); }
Output Sinh(Output x, const NodeName& name) { return Op("Sinh", {x}, name).Finish1(); }
Output Cosh(Output x, const NodeName& name) { return Op("Cosh", {x}, name).Finish1(); }
Output Asinh(Output x, const NodeName& name) { return Op("Asinh", {x}, name).Finish1(); }
Output Acosh(Output x, const NodeName& name) { return Op("Acosh", {x}, name).Finish1(); }
Output Atanh(Output x, const NodeName& name) { return Op("Atanh", {x}, name).Finish1(); }
Output Atan2(const Operand& y, const Operand& x, const NodeName& name) { return Op("Atan2", {y, x}, name).Finish1(); }
Output Xdivy(const Operand& x, const Operand& y, const NodeName& name) { return Op("Xdivy", {x, y}, name).Finish1(); }
Output Xlogy(const Operand& x, const Operand& y, const NodeName& name) { return Op("Xlogy", {x, y}, name).Finish1(); }

namespace {

constexpr const char* kFloats = "T: {bfloat16, half, float, double}";

// The gradient is the incoming one times the derivative, a function of the input x and the output y.
template <typename Derivative>
void RegisterUnary(OpRegistry& registry, const char* name, const char* doc, Derivative derivative) {
  registry.Register(
      OpDef(name)
          .Input("x: T")
          .Output("y: T")
          .Attr(kFloats)
          .ShapeRule(UnchangedShape)
          .Elementwise()
          .Gradient([derivative](GradientContext& c) { c.SetInput(0, derivative(c.grad(), c.input(0), c.output(0))); })
          .Doc(doc));
}

OpDef BinaryOp(const char* name, const char* first, const char* second, const char* doc) {
  return OpDef(name)
      .Input(first)
      .Input(second)
      .Output("z: T")
      .Attr(kFloats)
      .ShapeRule(BroadcastShape)
      .Broadcasting()
      .Doc(doc);
}

// Returns 1 for each element of x that is not 0, and 0 for each other element.
Output IsNotZero(Output x) { return Cast(NotEqual(x, ScalarLike(x, 0)), x.dtype()); }

void Atan2Gradient(GradientContext& c) {
  const Output y = c.input(0), x = c.input(1);
  const Output share = c.grad() / (Square(x) + Square(y));
  SetBroadcastGradients(c, share * x, -(share * y));
}

void XdivyGradient(GradientContext& c) {
  const Output g = c.grad(), x = c.input(0), y = c.input(1);
  SetBroadcastGradients(c, g * Xdivy(IsNotZero(x), y), g * Xdivy(-x, Square(y)));
}

void XlogyGradient(GradientContext& c) {
  const Output g = c.grad(), x = c.input(0), y = c.input(1);
  SetBroadcastGradients(c, g * Xlogy(IsNotZero(x), y), g * Xdivy(x, y));
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterSpecialFunctionOps(OpRegistry& registry) {
  using namespace ops;
  RegisterUnary(registry, "Asin", "The angle in [-pi/2, pi/2] whose sine is x.",
                [](Output g, Output x, Output) { return g / Sqrt(1.0f - Square(x)); });
  RegisterUnary(registry, "Acos", "The angle in [0, pi] whose cosine is x.",
                [](Output g, Output x, Output) { return -(g / Sqrt(1.0f - Square(x))); });
  RegisterUnary(registry, "Atan", "The angle in [-pi/2, pi/2] whose tangent is x.",
                [](Output g, Output x, Output) { return g / (Square(x) + 1.0f); });
  RegisterUnary(registry, "Sinh", "(e^x - e^-x) / 2.", [](Output g, Output x, Output) { return g * Cosh(x); });
  RegisterUnary(registry, "Cosh", "(e^x + e^-x) / 2.", [](Output g, Output x, Output) { return g * Sinh(x); });
  RegisterUnary(registry, "Asinh", "The number whose hyperbolic sine is x.",
                [](Output g, Output, Output y) { return g / Cosh(y); });
  RegisterUnary(registry, "Acosh", "The number, not negative, whose hyperbolic cosine is x.",
                [](Output g, Output, Output y) { return g / Sinh(y); });
  RegisterUnary(registry, "Atanh", "The number whose hyperbolic tangent is x.",
                [](Output g, Output x, Output) { return g / (1.0f - Square(x)); });
  registry.Register(
      BinaryOp("Atan2", "y: T", "x: T", "The angle of the point (x, y) in [-pi, pi].").Gradient(Atan2Gradient));
  registry.Register(BinaryOp("Xdivy", "x: T", "y: T", "x / y, and 0 where x is 0.").Gradient(XdivyGradient));
  registry.Register(BinaryOp("Xlogy", "x: T", "y: T", "x * log(y), and 0 where x is 0.").Gradient(XlogyGradient));
}

}  // namespace cohort
