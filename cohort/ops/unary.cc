#include "cohort/ops/unary.h"

#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

Output Apply(const char* op, Output x, const NodeName& name) { return Op(op, {x}, name).Finish1(); }

}  // namespace

Output Neg(Output x, const NodeName& name) { return Apply("Neg", x, name); }
Output Abs(Output x, const NodeName& name) { return Apply("Abs", x, name); }
Output Sign(Output x, const NodeName& name) { return Apply("Sign", x, name); }
Output Exp(Output x, const NodeName& name) { return Apply("Exp", x, name); }
Output Expm1(Output x, const NodeName& name) { return Apply("Expm1", x, name); }
Output Log(Output x, const NodeName& name) { return Apply("Log", x, name); }
Output Log1p(Output x, const NodeName& name) { return Apply("Log1p", x, name); }
Output Sqrt(Output x, const NodeName& name) { return Apply("Sqrt", x, name); }
Output Rsqrt(Output x, const NodeName& name) { return Apply("Rsqrt", x, name); }
Output Square(Output x, const NodeName& name) { return Apply("Square", x, name); }
Output Reciprocal(Output x, const NodeName& name) { return Apply("Reciprocal", x, name); }
Output Sin(Output x, const NodeName& name) { return Apply("Sin", x, name); }
Output Cos(Output x, const NodeName& name) { return Apply("Cos", x, name); }
Output Tan(Output x, const NodeName& name) { return Apply("Tan", x, name); }
Output Erf(Output x, const NodeName& name) { return Apply("Erf", x, name); }
Output Floor(Output x, const NodeName& name) { return Apply("Floor", x, name); }
Output Ceil(Output x, const NodeName& name) { return Apply("Ceil", x, name); }
Output Round(Output x, const NodeName& name) { return Apply("Round", x, name); }
Output IsNan(Output x, const NodeName& name) { return Apply("IsNan", x, name); }
Output IsInf(Output x, const NodeName& name) { return Apply("IsInf", x, name); }
Output IsFinite(Output x, const NodeName& name) { return Apply("IsFinite", x, name); }

namespace {

constexpr const char* kFloats = "T: {bfloat16, half, float, double}";
constexpr const char* kNumbers = "T: {bfloat16, half, float, double, uint8, int32, int64}";

OpDef UnaryOp(const char* name, const char* types, const char* doc) {
  return OpDef(name).Input("x: T").Output("y: T").Attr(types).ShapeRule(UnchangedShape).Elementwise().Doc(doc);
}

OpDef TestOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("x: T")
      .Output("y: bool")
      .Attr(kFloats)
      .ShapeRule(UnchangedShape)
      .Elementwise()
      .NotDifferentiable("a truth value")
      .Doc(doc);
}

// A gradient that is the incoming one times a function of the node's input x and output y.
template <typename Fn>
GradientFn Chain(Fn fn) {
  return [fn](GradientContext& c) { c.SetInput(0, fn(c.grad(), c.input(0), c.output(0))); };
}

void RegisterAlgebra(OpRegistry& registry) {
  registry.Register(UnaryOp("Neg", kNumbers, "-x.").Gradient(Chain([](Output g, Output, Output) { return -g; })));
  registry.Register(
      UnaryOp("Abs", kNumbers, "|x|.").Gradient(Chain([](Output g, Output x, Output) { return g * Sign(x); })));
  registry.Register(UnaryOp("Sign", kNumbers, "-1, 0 or 1 as x is negative, zero or positive; NaN for NaN.")
                        .Gradient(Chain([](Output g, Output, Output) { return ZerosLike(g); })));
  registry.Register(
      UnaryOp("Square", kNumbers, "x * x.").Gradient(Chain([](Output g, Output x, Output) { return g * (x * 2.0f); })));
  registry.Register(UnaryOp("Reciprocal", kNumbers, "1 / x; integers divide as integers, and 1 / 0 is an error there.")
                        .Gradient(Chain([](Output g, Output, Output y) { return g * -(y * y); })));
  registry.Register(UnaryOp("Sqrt", kFloats, "The square root of x.").Gradient(Chain([](Output g, Output, Output y) {
    return g * 0.5f / y;
  })));
  registry.Register(UnaryOp("Rsqrt", kFloats, "1 / sqrt(x).").Gradient(Chain([](Output g, Output, Output y) {
    return g * -0.5f * (y * y * y);
  })));
}

void RegisterTranscendental(OpRegistry& registry) {
  registry.Register(UnaryOp("Exp", kFloats, "e to the power of x.").Gradient(Chain([](Output g, Output, Output y) {
    return g * y;
  })));
  registry.Register(
      UnaryOp("Expm1", kFloats, "e^x - 1, exact also for small x.").Gradient(Chain([](Output g, Output x, Output) {
        return g * Exp(x);
      })));
  registry.Register(
      UnaryOp("Log", kFloats, "The natural logarithm of x.").Gradient(Chain([](Output g, Output x, Output) {
        return g / x;
      })));
  registry.Register(
      UnaryOp("Log1p", kFloats, "ln(1 + x), exact also for small x.").Gradient(Chain([](Output g, Output x, Output) {
        return g / (x + 1.0f);
      })));
  registry.Register(UnaryOp("Sin", kFloats, "The sine of x (radians).").Gradient(Chain([](Output g, Output x, Output) {
    return g * Cos(x);
  })));
  registry.Register(
      UnaryOp("Cos", kFloats, "The cosine of x (radians).").Gradient(Chain([](Output g, Output x, Output) {
        return -(g * Sin(x));
      })));
  registry.Register(
      UnaryOp("Tan", kFloats, "The tangent of x (radians).").Gradient(Chain([](Output g, Output, Output y) {
        return g * (y * y + 1.0f);
      })));
  registry.Register(UnaryOp("Erf", kFloats, "The error function 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x.")
                        .Gradient(Chain([](Output g, Output x, Output) {
                          return g * (Exp(-Square(x)) * ScalarLike(x, 1.1283791670955126));  // 2 / sqrt(pi)
                        })));
}

void RegisterRounding(OpRegistry& registry) {
  const char* flat = "constant between its steps";
  registry.Register(UnaryOp("Floor", kFloats, "The largest integer not above x.").NotDifferentiable(flat));
  registry.Register(UnaryOp("Ceil", kFloats, "The smallest integer not below x.").NotDifferentiable(flat));
  registry.Register(
      UnaryOp("Round", kNumbers, "The nearest integer; halves go to the even neighbour.").NotDifferentiable(flat));
  registry.Register(TestOp("IsNan", "Whether x is NaN."));
  registry.Register(TestOp("IsInf", "Whether x is infinite."));
  registry.Register(TestOp("IsFinite", "Whether x is neither infinite nor NaN."));
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterUnaryOps(OpRegistry& registry) {
  ops::RegisterAlgebra(registry);
  ops::RegisterTranscendental(registry);
  ops::RegisterRounding(registry);
}

}  // namespace cohort
