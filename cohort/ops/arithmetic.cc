#include "cohort/ops/arithmetic.h"

#include "cohort/core/error.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/broadcast_gradient.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/register.h"
#include "cohort/ops/select.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/unary.h"

namespace cohort::ops {
Output Add(const Operand& x, const Operand& y, const NodeName& name) { return Op("AddV2", {x, y}, name).Finish1(); }
Output Sub(const Operand& x, const Operand& y, const NodeName& name) { return Op("Sub", {x, y}, name).Finish1(); }
Output Mul(const Operand& x, const Operand& y, const NodeName& name) { return Op("Mul", {x, y}, name).Finish1(); }
Output Div(const Operand& x, const Operand& y, const NodeName& name) {
  return Op(IsInteger(x.is_number() ? y.dtype() : x.dtype()) ? "Div" : "RealDiv", {x, y}, name).Finish1();
}
Output FloorDiv(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("FloorDiv", {x, y}, name).Finish1();
}
Output FloorMod(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("FloorMod", {x, y}, name).Finish1();
}
Output Maximum(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("Maximum", {x, y}, name).Finish1();
}
Output Minimum(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("Minimum", {x, y}, name).Finish1();
}
Output Pow(const Operand& x, const Operand& y, const NodeName& name) { return Op("Pow", {x, y}, name).Finish1(); }
Output SquaredDifference(const Operand& x, const Operand& y, const NodeName& name) {
  return Op("SquaredDifference", {x, y}, name).Finish1();
}

Output AddN(const std::vector<Output>& inputs, const NodeName& name) {
  if (inputs.empty()) throw InvalidArgumentError("[ops] AddN needs at least one input");
  return inputs[0].graph().Op("AddN").Name(name).Inputs(inputs).Finish1();
}

namespace {

std::vector<Shape> AddNShape(ShapeContext& c) {
  Shape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) shape = shape.MergedWith(c.input(i));
  return {shape};
}

void AddNGradient(GradientContext& c) {
  for (int i = 0; i < c.node().num_inputs(); ++i) c.SetInput(i, c.raw_grad());
}

void DivGradient(GradientContext& c) {
  if (!IsFloating(c.input(0).dtype())) return;
  const Output gx = c.grad() / c.input(1);
  SetBroadcastGradients(c, gx, -(gx * c.output(0)));
}

// gx = g y x^(y-1); gy = g x^y ln x, and 0 where x <= 0.
void PowGradient(GradientContext& c) {
  if (!IsFloating(c.input(0).dtype())) return;
  const Output g = c.grad(), x = c.input(0), y = c.input(1);
  const Output positive = Greater(x, ScalarLike(x, 0));
  const Output log = SelectV2(positive, Log(SelectV2(positive, x, OnesLike(x))), ZerosLike(x));
  SetBroadcastGradients(c, g * y * Pow(x, y - 1.0f), g * c.output(0) * log);
}

// `x_wins` says where input 0 is the result; it takes the whole gradient of a tie.
void ExtremumGradient(GradientContext& c, Output x_wins) {
  const Output g = c.grad();
  const Output zero = ScalarLike(g, 0);
  SetBroadcastGradients(c, SelectV2(x_wins, g, zero), SelectV2(x_wins, zero, g));
}

void SquaredDifferenceGradient(GradientContext& c) {
  const Output gx = c.grad() * ((c.input(0) - c.input(1)) * 2.0f);
  SetBroadcastGradients(c, gx, -gx);
}

constexpr const char* kNumbers = "T: {bfloat16, half, float, double, uint8, int32, int64}";
constexpr const char* kNumbersAndStrings = "T: {bfloat16, half, float, double, uint8, int32, int64, string}";

OpDef BinaryOp(const char* name, const char* types, const char* doc) {
  return OpDef(name)
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(types)
      .ShapeRule(BroadcastShape)
      .Broadcasting()
      .Doc(doc);
}

void RegisterFieldOps(OpRegistry& registry) {
  const auto add = [](GradientContext& c) {
    const Output g = c.grad();
    SetBroadcastGradients(c, g, g);
  };
  registry.Register(BinaryOp("AddV2", kNumbers, "x + y.").Gradient(add));
  registry.Register(BinaryOp("Add", kNumbersAndStrings, "x + y; strings are joined.").Gradient(add));
  registry.Register(BinaryOp("Sub", kNumbers, "x - y.").Gradient([](GradientContext& c) {
    const Output g = c.grad();
    SetBroadcastGradients(c, g, -g);
  }));
  registry.Register(BinaryOp("Mul", kNumbers, "x * y.").Gradient([](GradientContext& c) {
    const Output g = c.grad();
    SetBroadcastGradients(c, g * c.input(1), g * c.input(0));
  }));
  registry.Register(
      BinaryOp("RealDiv", "T: {bfloat16, half, float, double}", "x / y of real numbers.").Gradient(DivGradient));
  registry.Register(BinaryOp("Div", kNumbers, "x / y; integers are truncated towards zero.").Gradient(DivGradient));
}

void RegisterOtherBinary(OpRegistry& registry) {
  registry.Register(BinaryOp("FloorDiv", kNumbers, "The largest integer not above x / y.")
                        .NotDifferentiable("constant between its steps"));
  registry.Register(BinaryOp("FloorMod", kNumbers, "x - floor(x / y) * y: the remainder with the sign of y.")
                        .Gradient([](GradientContext& c) {
                          if (!IsFloating(c.input(0).dtype())) return;
                          const Output g = c.grad();
                          SetBroadcastGradients(c, g, -(g * FloorDiv(c.input(0), c.input(1))));
                        }));
  registry.Register(
      BinaryOp("Maximum", kNumbers, "The larger of x and y; NaN where either is NaN.").Gradient([](GradientContext& c) {
        ExtremumGradient(c, GreaterEqual(c.input(0), c.input(1)));
      }));
  registry.Register(BinaryOp("Minimum", kNumbers, "The smaller of x and y; NaN where either is NaN.")
                        .Gradient([](GradientContext& c) { ExtremumGradient(c, LessEqual(c.input(0), c.input(1))); }));
  registry.Register(BinaryOp("Pow", "T: {bfloat16, float, half, double, int32, int64}",
                             "x to the power of y. A negative power of an integer is an error.")
                        .Gradient(PowGradient));
  registry.Register(BinaryOp("SquaredDifference", "T: {bfloat16, half, float, double, int32, int64}", "(x - y)^2.")
                        .Gradient(SquaredDifferenceGradient));
  registry.Register(OpDef("AddN")
                        .Input("inputs: N * T")
                        .Output("sum: T")
                        .Attr("N: int >= 1")
                        .Attr(kNumbers)
                        .ShapeRule(AddNShape)
                        .Elementwise()
                        .Gradient(AddNGradient)
                        .Doc("The sum of all inputs, which have one shape."));
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterArithmeticOps(OpRegistry& registry) {
  ops::RegisterFieldOps(registry);
  ops::RegisterOtherBinary(registry);
}

}  // namespace cohort
