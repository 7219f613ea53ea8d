// The kernels of activation functions and of their gradients. Their launches are in activation.cu.
#include "cohort/backends/cuda/kernels/activation.h"

#include <memory>

#include "cohort/backends/cuda/kernels/activation.cu.h"
#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/passes/move_activations.h"

namespace cohort::cuda {
namespace {

struct NamedActivation {
  const char* op;
  Activation activation;
};
constexpr NamedActivation kActivations[] = {{"Relu", Activation::kRelu},        {"Relu6", Activation::kRelu6},
                                            {"Elu", Activation::kElu},          {"Selu", Activation::kSelu},
                                            {"Sigmoid", Activation::kSigmoid},  {"Tanh", Activation::kTanh},
                                            {"Softplus", Activation::kSoftplus}};

struct NamedGradient {
  const char* op;
  ActivationGradient gradient;
};
constexpr NamedGradient kGradients[] = {
    {"ReluGrad", ActivationGradient::kRelu},         {"Relu6Grad", ActivationGradient::kRelu6},
    {"EluGrad", ActivationGradient::kElu},           {"SeluGrad", ActivationGradient::kSelu},
    {"SoftplusGrad", ActivationGradient::kSoftplus}, {"SigmoidGrad", ActivationGradient::kSigmoid},
    {"TanhGrad", ActivationGradient::kTanh}};

// Where the operands and the result of a call lie. The result takes the memory of an operand if possible.
struct Places {
  const void* a;
  const void* b;  // null if there is one operand
  void* out;
  int64_t n;
};

Places PlacesOf(KernelContext& ctx) {
  const Shape shape = ctx.input(0).shape();
  const bool two = ctx.num_inputs() == 2;
  if (two && ctx.input(1).shape() != shape) {
    throw InvalidArgumentError(
        StrCat("[kernels/activation] expected two tensors of one shape; got ", shape, " and ", ctx.input(1).shape()));
  }
  Places places{ctx.input(0).raw_data(), two ? ctx.input(1).raw_data() : nullptr, nullptr, 0};
  Tensor& out = two ? ctx.ForwardInputOrAllocate({0, 1}, 0, shape) : ctx.ForwardInputOrAllocate(0, 0, shape);
  places.out = out.raw_data();
  places.n = out.num_elements();
  return places;
}

class ActivationKernel final : public OpKernel {
 public:
  explicit ActivationKernel(const KernelConstruction& c)
      : activation_(FindActivation(c.node.op_name())), type_(FloatingType(c.attr<DType>("T"), c.node.op_name())) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Places p = PlacesOf(ctx);
    if (p.n > 0) LaunchActivation(call.driver(), call.stream(), activation_, type_, p.a, p.out, p.n);
  }

 private:
  const Activation activation_;
  const ElementType type_;
};

class GradientKernel final : public OpKernel {
 public:
  GradientKernel(ActivationGradient gradient, ElementType type) : gradient_(gradient), type_(type) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Places p = PlacesOf(ctx);
    if (p.n > 0) LaunchActivationGradient(call.driver(), call.stream(), gradient_, type_, p.a, p.b, p.out, p.n);
  }

 private:
  const ActivationGradient gradient_;
  const ElementType type_;
};

// LeakyRelu, and its gradient if there are two operands.
class LeakyReluKernel final : public OpKernel {
 public:
  explicit LeakyReluKernel(const KernelConstruction& c)
      : alpha_(c.attr<float>("alpha")), type_(FloatingType(c.attr<DType>("T"), c.node.op_name())) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Places p = PlacesOf(ctx);
    if (p.n == 0) return;
    if (p.b == nullptr) {
      LaunchLeakyRelu(call.driver(), call.stream(), type_, alpha_, p.a, p.out, p.n);
    } else {
      LaunchLeakyReluGradient(call.driver(), call.stream(), type_, alpha_, p.a, p.b, p.out, p.n);
    }
  }

 private:
  const float alpha_;
  const ElementType type_;
};

void Register(KernelRegistry& registry, const char* name, ActivationGradient gradient) {
  registry.Register(name, kGpu, [gradient](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<GradientKernel>(gradient, FloatingType(c.attr<DType>("T"), c.node.op_name()));
  });
}

}  // namespace

Activation FindActivation(const std::string& op) {
  if (op.empty()) return Activation::kNone;
  for (const NamedActivation& named : kActivations) {
    if (op == named.op) return named.activation;
  }
  throw InvalidArgumentError(StrCat("[backends/cuda] there is no activation '", op, "'"));
}

std::optional<ActivationGradient> FindActivationGradient(const std::string& op) {
  for (const NamedGradient& named : kGradients) {
    if (op == named.op) return named.gradient;
  }
  return std::nullopt;
}

Activation InputActivation(const KernelConstruction& c) {
  return c.node.has_attr(kInputActivation) ? FindActivation(c.attr<std::string>(kInputActivation)) : Activation::kNone;
}

AppliedGradient GradientToApply(const KernelConstruction& c) {
  const auto& op = c.attr<std::string>("gradient");
  const std::optional<ActivationGradient> gradient = FindActivationGradient(op);
  if (gradient) return {*gradient, nullptr, FindActivation(c.attr<std::string>("activation"))};
  throw InvalidArgumentError(StrCat("[backends/cuda] there is no gradient of an activation '", op, "'"));
}

void CheckActivated(const Shape& activated, const Shape& gradient) {
  if (activated == gradient) return;
  throw InvalidArgumentError(
      StrCat("[kernels/activation] expected two tensors of one shape; got ", gradient, " and ", activated));
}

void RegisterActivationKernels(KernelRegistry& registry) {
  for (const NamedActivation& named : kActivations) registry.Register<ActivationKernel>(named.op, kGpu);
  for (const NamedGradient& named : kGradients) Register(registry, named.op, named.gradient);
  registry.Register<LeakyReluKernel>("LeakyRelu", kGpu);
  registry.Register<LeakyReluKernel>("LeakyReluGrad", kGpu);
}

}  // namespace cohort::cuda
