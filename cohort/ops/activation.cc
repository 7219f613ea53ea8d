#include "cohort/ops/activation.h"

#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/select.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

constexpr char kFloats[] = "T: {float32, float64, bfloat16}";

std::vector<Shape> LikeBoth(ShapeContext& c) { return {c.input(0).MergedWith(c.input(1))}; }

// An activation whose gradient op takes (gradients, features) or (gradients, outputs).
struct Activation {
  const char* op;
  const char* doc;
  const char* grad_op;
  bool from_output;          // the gradient op reads the output and not the input
  const char* second_input;  // its name in the gradient op
  GradientFn grad_grad;
};

void RegisterActivation(OpRegistry& registry, const Activation& a) {
  const std::string grad_op = a.grad_op;
  const bool from_output = a.from_output;
  registry.Register(OpDef(a.op)
                        .Input("features: T")
                        .Output("activations: T")
                        .Attr(kFloats)
                        .ShapeRule(ops::UnchangedShape)
                        .Activation()
                        .Gradient([grad_op, from_output](GradientContext& c) {
                          const Output value = from_output ? c.output(0) : c.input(0);
                          c.SetInput(0, ops::Op(grad_op, {c.grad(0), value}).Finish1());
                        })
                        .Doc(a.doc));
  OpDef grad = OpDef(a.grad_op)
                   .Input("gradients: T")
                   .Input(std::string(a.second_input) + ": T")
                   .Output("backprops: T")
                   .Attr(kFloats)
                   .ShapeRule(LikeBoth)
                   .Elementwise()
                   .Gradient(a.grad_grad)
                   .Doc(std::string("Gradient of ") + a.op + ": gradients times its derivative.");
  registry.Register(from_output ? std::move(grad).ActivationGradient(0) : std::move(grad));
}

// Of an op that is linear in the gradients and piecewise linear in the other input.
GradientFn SameOpOnly(const char* op) {
  return [op](GradientContext& c) { c.SetInput(0, ops::Op(op, {c.grad(0), c.input(1)}).Finish1()); };
}

// EluGrad, SeluGrad: g (y + c) for y < 0, so that the derivative by y is g there and 0 elsewhere.
GradientFn ExponentialPart(const char* op) {
  return [op](GradientContext& c) {
    const Output g = c.grad(0);
    const Output y = c.input(1);
    const Output zero = ops::ScalarLike(y, 0.0);
    c.SetInput(0, ops::Op(op, {g, y}).Finish1());
    c.SetInput(1, ops::SelectV2(ops::Less(y, zero), ops::Mul(g, c.input(0)), zero));
  };
}

void SoftplusGradGrad(GradientContext& c) {
  const Output g = c.grad(0);
  const Output x = c.input(1);
  c.SetInput(0, ops::Op("SoftplusGrad", {g, x}).Finish1());
  c.SetInput(1, ops::Op("SigmoidGrad", {ops::Sigmoid(x), ops::Mul(g, c.input(0))}).Finish1());
}

void RegisterLeakyRelu(OpRegistry& registry) {
  const auto gradient = [](GradientContext& c, Output gradients, Output features) -> Output {
    return c.graph()
        .Op("LeakyReluGrad")
        .Input(gradients)
        .Input(features)
        .Attr("alpha", c.attr<float>("alpha"))
        .Finish1();
  };
  registry.Register(OpDef("LeakyRelu")
                        .Input("features: T")
                        .Output("activations: T")
                        .Attr("alpha: float = 0.2")
                        .Attr("T: {float32, float64, bfloat16} = float32")
                        .ShapeRule(ops::UnchangedShape)
                        .Elementwise()
                        .Gradient([gradient](GradientContext& c) { c.SetInput(0, gradient(c, c.grad(0), c.input(0))); })
                        .Doc("x for x > 0, else alpha x."));
  registry.Register(OpDef("LeakyReluGrad")
                        .Input("gradients: T")
                        .Input("features: T")
                        .Output("backprops: T")
                        .Attr("alpha: float = 0.2")
                        .Attr("T: {float32, float64, bfloat16} = float32")
                        .ShapeRule(LikeBoth)
                        .Elementwise()
                        .Gradient([gradient](GradientContext& c) { c.SetInput(0, gradient(c, c.grad(0), c.input(1))); })
                        .Doc("Gradient of LeakyRelu: gradients where features > 0, else alpha gradients."));
}

// Sigmoid and Tanh: TensorFlow's gradient ops take (y, dy), and its schemas call the input x.
void RegisterSquashing(OpRegistry& registry, const char* op, const char* grad_op, const char* doc,
                       GradientFn grad_grad) {
  const std::string grad_name = grad_op;
  registry.Register(OpDef(op)
                        .Input("x: T")
                        .Output("y: T")
                        .Attr(kFloats)
                        .ShapeRule(ops::UnchangedShape)
                        .Activation()
                        .Gradient([grad_name](GradientContext& c) {
                          c.SetInput(0, ops::Op(grad_name, {c.output(0), c.grad(0)}).Finish1());
                        })
                        .Doc(doc));
  registry.Register(OpDef(grad_op)
                        .Input("y: T")
                        .Input("dy: T")
                        .Output("z: T")
                        .Attr(kFloats)
                        .ShapeRule(LikeBoth)
                        .ActivationGradient(1)
                        .Gradient(std::move(grad_grad))
                        .Doc(std::string("Gradient of ") + op + " by its output y: dy times the derivative."));
}

// z = dy y (1 - y).
void SigmoidGradGrad(GradientContext& c) {
  const Output g = c.grad(0);
  const Output y = c.input(0);
  const Output g_dy = ops::Mul(g, c.input(1));
  c.SetInput(0, ops::Sub(g_dy, ops::Mul(ops::ScalarLike(y, 2.0), ops::Mul(g_dy, y))));
  c.SetInput(1, ops::Op("SigmoidGrad", {y, g}).Finish1());
}

// z = dy (1 - y^2).
void TanhGradGrad(GradientContext& c) {
  const Output g = c.grad(0);
  const Output y = c.input(0);
  c.SetInput(0, ops::Mul(ops::ScalarLike(y, -2.0), ops::Mul(ops::Mul(g, c.input(1)), y)));
  c.SetInput(1, ops::Op("TanhGrad", {y, g}).Finish1());
}

}  // namespace

void RegisterActivationOps(OpRegistry& registry) {
  RegisterActivation(registry, {"Relu", "max(x, 0).", "ReluGrad", true, "features", SameOpOnly("ReluGrad")});
  RegisterActivation(registry, {"Relu6", "min(max(x, 0), 6).", "Relu6Grad", true, "features", SameOpOnly("Relu6Grad")});
  RegisterActivation(registry,
                     {"Elu", "x for x > 0, else e^x - 1.", "EluGrad", true, "outputs", ExponentialPart("EluGrad")});
  RegisterActivation(registry,
                     {"Selu", "scale x for x > 0, else scale alpha (e^x - 1), alpha 1.67326324, scale 1.05070098.",
                      "SeluGrad", true, "outputs", ExponentialPart("SeluGrad")});
  RegisterActivation(registry, {"Softplus", "log(1 + e^x).", "SoftplusGrad", false, "features", SoftplusGradGrad});
  RegisterLeakyRelu(registry);
  RegisterSquashing(registry, "Sigmoid", "SigmoidGrad", "1 / (1 + e^-x).", SigmoidGradGrad);
  RegisterSquashing(registry, "Tanh", "TanhGrad", "Hyperbolic tangent.", TanhGradGrad);
}

namespace ops {
namespace {
Output Named(const char* op, Output x, const NodeName& name) { return Op(op, {x}).Name(name).Finish1(); }
}  // namespace

Output Relu(Output features, const NodeName& name) { return Named("Relu", features, name); }
Output Relu6(Output features, const NodeName& name) { return Named("Relu6", features, name); }
Output LeakyRelu(Output features, float alpha, const NodeName& name) {
  return Op("LeakyRelu", {features}).Name(name).Attr("alpha", alpha).Finish1();
}
Output Elu(Output features, const NodeName& name) { return Named("Elu", features, name); }
Output Selu(Output features, const NodeName& name) { return Named("Selu", features, name); }
Output Sigmoid(Output x, const NodeName& name) { return Named("Sigmoid", x, name); }
Output Tanh(Output x, const NodeName& name) { return Named("Tanh", x, name); }
Output Softplus(Output features, const NodeName& name) { return Named("Softplus", features, name); }
Output Swish(Output features, const NodeName& name) {
  const Output gate = Sigmoid(features, {"Sigmoid", name.site()});
  return Op("Mul", {features, gate}).Name(name).Finish1();
}

}  // namespace ops
}  // namespace cohort
