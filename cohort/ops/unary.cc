#include "cohort/ops/unary.h"

#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

Output Apply(const char* op, Output x) { return Op(op, {x}).Finish1(); }

}  // namespace

Output Neg(Output x) { return Apply("Neg", x); }
Output Abs(Output x) { return Apply("Abs", x); }
Output Sign(Output x) { return Apply("Sign", x); }
Output Exp(Output x) { return Apply("Exp", x); }
Output Expm1(Output x) { return Apply("Expm1", x); }
Output Log(Output x) { return Apply("Log", x); }
Output Log1p(Output x) { return Apply("Log1p", x); }
Output Sqrt(Output x) { return Apply("Sqrt", x); }
Output Rsqrt(Output x) { return Apply("Rsqrt", x); }
Output Square(Output x) { return Apply("Square", x); }
Output Reciprocal(Output x) { return Apply("Reciprocal", x); }
Output Sin(Output x) { return Apply("Sin", x); }
Output Cos(Output x) { return Apply("Cos", x); }
Output Tan(Output x) { return Apply("Tan", x); }
Output Erf(Output x) { return Apply("Erf", x); }
Output Floor(Output x) { return Apply("Floor", x); }
Output Ceil(Output x) { return Apply("Ceil", x); }
Output Round(Output x) { return Apply("Round", x); }
Output IsNan(Output x) { return Apply("IsNan", x); }
Output IsInf(Output x) { return Apply("IsInf", x); }
Output IsFinite(Output x) { return Apply("IsFinite", x); }

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
