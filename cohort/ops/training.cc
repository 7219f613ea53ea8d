#include "cohort/ops/training.h"

#include <initializer_list>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/joined_updates.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/register.h"

namespace cohort {
namespace {

bool IsVariable(const ArgDef& arg) { return arg.dtype == DType::kResource; }
bool IsGradient(const ArgDef& arg) { return arg.name == "grad" || arg.name == "delta"; }
bool IsIndices(const ArgDef& arg) { return arg.name == "indices"; }

// Variables, slots and gradient have one shape (the gradient of a sparse update: its rows), all else is scalar.
std::vector<Shape> UpdateShape(ShapeContext& c, const std::vector<ArgDef>& args) {
  Shape shape = Shape::UnknownRank();
  int grad = -1;
  int indices = -1;
  for (int i = 0; i < static_cast<int>(args.size()); ++i) {
    const ArgDef& arg = args[static_cast<size_t>(i)];
    if (IsVariable(arg)) {
      shape = shape.MergedWith(c.handle_shape(i));
    } else if (IsGradient(arg)) {
      grad = i;
    } else if (IsIndices(arg)) {
      indices = i;
    } else {
      c.WithRank(i, 0);
    }
  }
  if (indices < 0) {
    shape.MergedWith(c.input(grad));
  } else if (shape.has_rank()) {
    if (shape.rank() < 1) throw InvalidArgumentError("Shape must be at least rank 1 but is rank 0 for the variable");
    c.WithRank(indices, 1).Concat(shape.Sub(1, shape.rank())).MergedWith(c.input(grad));
  }
  return {};
}

// `inputs`: names in TensorFlow's order; "var" and the names in `slots` are handles.
void RegisterUpdate(OpRegistry& registry, const char* op, std::initializer_list<std::string_view> inputs,
                    std::initializer_list<std::string_view> slots, std::initializer_list<const char*> attrs,
                    const char* doc) {
  OpDef def(op);
  bool sparse = false;
  for (const std::string_view name : inputs) {
    bool handle = name == "var";
    for (const std::string_view slot : slots) handle |= name == slot;
    const std::string input(name);
    if (handle) {
      std::move(def).Input(input + ": resource");
    } else if (name == "indices") {
      sparse = true;
      std::move(def).Input("indices: Tindices");
    } else {
      std::move(def).Input(input + ": T");
    }
  }
  std::move(def).Attr("T: {float32, float64, bfloat16}");
  if (sparse) std::move(def).Attr("Tindices: {int32, int64}");
  std::move(def).Attr("use_locking: bool = false");
  for (const char* attr : attrs) std::move(def).Attr(attr);
  const std::vector<ArgDef> args = def.inputs();
  registry.Register(std::move(def)
                        .ShapeRule([args](ShapeContext& c) { return UpdateShape(c, args); })
                        .NotDifferentiable("changes variables and has no output")
                        .Stateful()
                        .UpdatesVariable()
                        .Doc(doc));
}

constexpr char kNesterov[] = "use_nesterov: bool = false";
constexpr char kUpdateSlots[] = "update_slots: bool = true";
constexpr char kMultiplyLinear[] = "multiply_linear_by_lr: bool = false";

void RegisterDenseUpdates(OpRegistry& registry) {
  RegisterUpdate(registry, "ResourceApplyGradientDescent", {"var", "alpha", "delta"}, {}, {}, "var -= alpha delta.");
  RegisterUpdate(registry, "ResourceApplyMomentum", {"var", "accum", "lr", "grad", "momentum"}, {"accum"}, {kNesterov},
                 "accum = momentum accum + grad; var -= lr accum (Nesterov: var -= lr (grad + momentum accum)).");
  RegisterUpdate(registry, "ResourceApplyKerasMomentum", {"var", "accum", "lr", "grad", "momentum"}, {"accum"},
                 {kNesterov},
                 "accum = momentum accum - lr grad; var += accum (Nesterov: var += momentum accum - lr grad).");
  RegisterUpdate(registry, "ResourceApplyAdagrad", {"var", "accum", "lr", "grad"}, {"accum"}, {kUpdateSlots},
                 "accum += grad^2; var -= lr grad / sqrt(accum).");
  RegisterUpdate(registry, "ResourceApplyAdagradV2", {"var", "accum", "lr", "epsilon", "grad"}, {"accum"},
                 {kUpdateSlots}, "accum += grad^2; var -= lr grad / (sqrt(accum) + epsilon).");
  RegisterUpdate(registry, "ResourceApplyKerasAdagrad", {"var", "accum", "lr", "epsilon", "grad"}, {"accum"}, {},
                 "accum += grad^2; var -= lr grad / sqrt(accum + epsilon).");
  RegisterUpdate(registry, "ResourceApplyAdam",
                 {"var", "m", "v", "beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"}, {"m", "v"},
                 {kNesterov},
                 "a = lr sqrt(1 - beta2_power) / (1 - beta1_power); m += (grad - m)(1 - beta1); v += (grad^2 - v)(1 - "
                 "beta2); var -= a m / (sqrt(v) + epsilon) (Nesterov: grad (1 - beta1) + beta1 m for m).");
  RegisterUpdate(registry, "ResourceApplyAdamWithAmsgrad",
                 {"var", "m", "v", "vhat", "beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
                 {"m", "v", "vhat"}, {},
                 "As ResourceApplyAdam, then vhat = max(vhat, v), and vhat in place of v under the root.");
  RegisterUpdate(registry, "ResourceApplyRMSProp", {"var", "ms", "mom", "lr", "rho", "momentum", "epsilon", "grad"},
                 {"ms", "mom"}, {},
                 "ms += (grad^2 - ms)(1 - rho); mom = momentum mom + lr grad / sqrt(ms + epsilon); var -= mom.");
  RegisterUpdate(
      registry, "ResourceApplyCenteredRMSProp", {"var", "mg", "ms", "mom", "lr", "rho", "momentum", "epsilon", "grad"},
      {"mg", "ms", "mom"}, {},
      "ms += (grad^2 - ms)(1 - rho); mg += (grad - mg)(1 - rho); mom = momentum mom + lr grad / sqrt(ms - mg^2 "
      "+ epsilon); var -= mom.");
  RegisterUpdate(registry, "ResourceApplyFtrl", {"var", "accum", "linear", "grad", "lr", "l1", "l2", "lr_power"},
                 {"accum", "linear"}, {kMultiplyLinear},
                 "a' = accum + grad^2; linear += grad - (a'^-lr_power - accum^-lr_power) / lr var; var = (clip(linear, "
                 "-l1, l1) - linear) / (a'^-lr_power / lr + 2 l2); accum = a'.");
  RegisterUpdate(registry, "ResourceApplyFtrlV2",
                 {"var", "accum", "linear", "grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"}, {"accum", "linear"},
                 {kMultiplyLinear}, "As ResourceApplyFtrl, but `linear` also grows by 2 l2_shrinkage var.");
  registry.Register(OpDef("ResourceApplyWeightDecay")
                        .Input("var: resource")
                        .Input("alpha: T")
                        .Attr("T: {float32, float64, bfloat16}")
                        .Attr("use_locking: bool = false")
                        .ShapeRule([](ShapeContext& c) -> std::vector<Shape> {
                          c.WithRank(1, 0);
                          return {};
                        })
                        .NotDifferentiable("changes variables and has no output")
                        .Stateful()
                        .UpdatesVariable()
                        .Doc("var -= alpha var (decoupled weight decay, alpha = rate times learning rate)."));
}

void RegisterSparseUpdates(OpRegistry& registry) {
  RegisterUpdate(registry, "ResourceSparseApplyMomentum", {"var", "accum", "lr", "grad", "indices", "momentum"},
                 {"accum"}, {kNesterov}, "ResourceApplyMomentum for rows `indices`.");
  RegisterUpdate(registry, "ResourceSparseApplyKerasMomentum", {"var", "accum", "lr", "grad", "indices", "momentum"},
                 {"accum"}, {kNesterov}, "ResourceApplyKerasMomentum for rows `indices`.");
  RegisterUpdate(registry, "ResourceSparseApplyAdagrad", {"var", "accum", "lr", "grad", "indices"}, {"accum"},
                 {kUpdateSlots}, "ResourceApplyAdagrad for rows `indices`.");
  RegisterUpdate(registry, "ResourceSparseApplyAdagradV2", {"var", "accum", "lr", "epsilon", "grad", "indices"},
                 {"accum"}, {kUpdateSlots}, "ResourceApplyAdagradV2 for rows `indices`.");
  RegisterUpdate(registry, "ResourceSparseApplyKerasAdagrad", {"var", "accum", "lr", "epsilon", "grad", "indices"},
                 {"accum"}, {}, "ResourceApplyKerasAdagrad for rows `indices`.");
  RegisterUpdate(registry, "ResourceSparseApplyAdam",
                 {"var", "m", "v", "beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad", "indices"},
                 {"m", "v"}, {kNesterov}, "ResourceApplyAdam for rows `indices`.");
  RegisterUpdate(registry, "ResourceSparseApplyRMSProp",
                 {"var", "ms", "mom", "lr", "rho", "momentum", "epsilon", "grad", "indices"}, {"ms", "mom"}, {},
                 "ResourceApplyRMSProp for rows `indices`.");
  RegisterUpdate(registry, "ResourceSparseApplyCenteredRMSProp",
                 {"var", "mg", "ms", "mom", "lr", "rho", "momentum", "epsilon", "grad", "indices"}, {"mg", "ms", "mom"},
                 {}, "ResourceApplyCenteredRMSProp for rows `indices`.");
  RegisterUpdate(registry, "ResourceSparseApplyFtrl",
                 {"var", "accum", "linear", "grad", "indices", "lr", "l1", "l2", "lr_power"}, {"accum", "linear"},
                 {kMultiplyLinear}, "ResourceApplyFtrl for rows `indices`.");
  RegisterUpdate(registry, "ResourceSparseApplyFtrlV2",
                 {"var", "accum", "linear", "grad", "indices", "lr", "l1", "l2", "l2_shrinkage", "lr_power"},
                 {"accum", "linear"}, {kMultiplyLinear}, "ResourceApplyFtrlV2 for rows `indices`.");
}

// The shapes were checked when the single updates were made.
void RegisterJoinedUpdates(OpRegistry& registry) {
  registry.Register(OpDef(kJoinedUpdates)
                        .Input("inputs: Tin")
                        .Attr("op: string")
                        .Attr("names: list(string) >= 1")
                        .Attr("Tin: list(type) >= 1")
                        .Attr("T: {float32, float64, bfloat16} = float32")
                        .Attr("dtype: type = float32")
                        .Attr("Tindices: {int32, int64} = int64")
                        .Attr("use_locking: bool = false")
                        .Attr(kNesterov)
                        .Attr(kUpdateSlots)
                        .Attr(kMultiplyLinear)
                        .ShapeRule([](ShapeContext&) { return std::vector<Shape>(); })
                        .NotDifferentiable("changes variables and has no output")
                        .Stateful()
                        .UpdatesVariable()
                        .Doc("Several updates by one op (graph/joined_updates.h)."));
}

}  // namespace

void RegisterTrainingOps(OpRegistry& registry) {
  RegisterDenseUpdates(registry);
  RegisterSparseUpdates(registry);
  RegisterJoinedUpdates(registry);
}

namespace ops {
namespace {

// Beside the variable, inputs in the op's order.
NodeBuilder Update(const char* op, std::initializer_list<Output> inputs, const NodeName& name) {
  NodeBuilder builder = inputs.begin()->graph().Op(op);
  builder.Name(name);
  for (const Output& input : inputs) builder.Input(input);
  return builder;
}

Node* FinishBeside(Output var, NodeBuilder builder) {
  const ColocateWith beside(var.graph(), *var.node);
  return builder.Finish();
}

}  // namespace

Node* ResourceApplyGradientDescent(Output var, Output alpha, Output delta, const NodeName& name) {
  return FinishBeside(var, Update("ResourceApplyGradientDescent", {var, alpha, delta}, name));
}
Node* ResourceApplyMomentum(Output var, Output accum, Output lr, Output grad, Output momentum, bool use_nesterov,
                            const NodeName& name) {
  return FinishBeside(
      var, Update("ResourceApplyMomentum", {var, accum, lr, grad, momentum}, name).Attr("use_nesterov", use_nesterov));
}
Node* ResourceApplyKerasMomentum(Output var, Output accum, Output lr, Output grad, Output momentum, bool use_nesterov,
                                 const NodeName& name) {
  return FinishBeside(
      var,
      Update("ResourceApplyKerasMomentum", {var, accum, lr, grad, momentum}, name).Attr("use_nesterov", use_nesterov));
}
Node* ResourceApplyAdagrad(Output var, Output accum, Output lr, Output grad, const NodeName& name) {
  return FinishBeside(var, Update("ResourceApplyAdagrad", {var, accum, lr, grad}, name));
}
Node* ResourceApplyAdagradV2(Output var, Output accum, Output lr, Output epsilon, Output grad, const NodeName& name) {
  return FinishBeside(var, Update("ResourceApplyAdagradV2", {var, accum, lr, epsilon, grad}, name));
}
Node* ResourceApplyKerasAdagrad(Output var, Output accum, Output lr, Output epsilon, Output grad,
                                const NodeName& name) {
  return FinishBeside(var, Update("ResourceApplyKerasAdagrad", {var, accum, lr, epsilon, grad}, name));
}
Node* ResourceApplyAdam(Output var, Output m, Output v, const AdamScalars& s, Output grad, bool use_nesterov,
                        const NodeName& name) {
  return FinishBeside(var,
                      Update("ResourceApplyAdam",
                             {var, m, v, s.beta1_power, s.beta2_power, s.lr, s.beta1, s.beta2, s.epsilon, grad}, name)
                          .Attr("use_nesterov", use_nesterov));
}
Node* ResourceApplyAdamWithAmsgrad(Output var, Output m, Output v, Output vhat, const AdamScalars& s, Output grad,
                                   const NodeName& name) {
  return FinishBeside(
      var, Update("ResourceApplyAdamWithAmsgrad",
                  {var, m, v, vhat, s.beta1_power, s.beta2_power, s.lr, s.beta1, s.beta2, s.epsilon, grad}, name));
}
Node* ResourceApplyRMSProp(Output var, Output ms, Output mom, const RMSPropScalars& s, Output grad,
                           const NodeName& name) {
  return FinishBeside(var,
                      Update("ResourceApplyRMSProp", {var, ms, mom, s.lr, s.rho, s.momentum, s.epsilon, grad}, name));
}
Node* ResourceApplyCenteredRMSProp(Output var, Output mg, Output ms, Output mom, const RMSPropScalars& s, Output grad,
                                   const NodeName& name) {
  return FinishBeside(
      var, Update("ResourceApplyCenteredRMSProp", {var, mg, ms, mom, s.lr, s.rho, s.momentum, s.epsilon, grad}, name));
}
Node* ResourceApplyFtrl(Output var, Output accum, Output linear, Output grad, const FtrlScalars& s,
                        const NodeName& name) {
  return FinishBeside(var, Update("ResourceApplyFtrl", {var, accum, linear, grad, s.lr, s.l1, s.l2, s.lr_power}, name));
}
Node* ResourceApplyFtrlV2(Output var, Output accum, Output linear, Output grad, const FtrlScalars& s,
                          Output l2_shrinkage, const NodeName& name) {
  return FinishBeside(
      var, Update("ResourceApplyFtrlV2", {var, accum, linear, grad, s.lr, s.l1, s.l2, l2_shrinkage, s.lr_power}, name));
}
Node* ResourceApplyWeightDecay(Output var, Output alpha, const NodeName& name) {
  return FinishBeside(var, Update("ResourceApplyWeightDecay", {var, alpha}, name));
}

Node* ResourceSparseApplyMomentum(Output var, Output accum, Output lr, Output grad, Output indices, Output momentum,
                                  bool use_nesterov, const NodeName& name) {
  return FinishBeside(var, Update("ResourceSparseApplyMomentum", {var, accum, lr, grad, indices, momentum}, name)
                               .Attr("use_nesterov", use_nesterov));
}
Node* ResourceSparseApplyKerasMomentum(Output var, Output accum, Output lr, Output grad, Output indices,
                                       Output momentum, bool use_nesterov, const NodeName& name) {
  return FinishBeside(var, Update("ResourceSparseApplyKerasMomentum", {var, accum, lr, grad, indices, momentum}, name)
                               .Attr("use_nesterov", use_nesterov));
}
Node* ResourceSparseApplyAdagrad(Output var, Output accum, Output lr, Output grad, Output indices,
                                 const NodeName& name) {
  return FinishBeside(var, Update("ResourceSparseApplyAdagrad", {var, accum, lr, grad, indices}, name));
}
Node* ResourceSparseApplyAdagradV2(Output var, Output accum, Output lr, Output epsilon, Output grad, Output indices,
                                   const NodeName& name) {
  return FinishBeside(var, Update("ResourceSparseApplyAdagradV2", {var, accum, lr, epsilon, grad, indices}, name));
}
Node* ResourceSparseApplyKerasAdagrad(Output var, Output accum, Output lr, Output epsilon, Output grad, Output indices,
                                      const NodeName& name) {
  return FinishBeside(var, Update("ResourceSparseApplyKerasAdagrad", {var, accum, lr, epsilon, grad, indices}, name));
}
Node* ResourceSparseApplyAdam(Output var, Output m, Output v, const AdamScalars& s, Output grad, Output indices,
                              bool use_nesterov, const NodeName& name) {
  return FinishBeside(
      var, Update("ResourceSparseApplyAdam",
                  {var, m, v, s.beta1_power, s.beta2_power, s.lr, s.beta1, s.beta2, s.epsilon, grad, indices}, name)
               .Attr("use_nesterov", use_nesterov));
}
Node* ResourceSparseApplyRMSProp(Output var, Output ms, Output mom, const RMSPropScalars& s, Output grad,
                                 Output indices, const NodeName& name) {
  return FinishBeside(var, Update("ResourceSparseApplyRMSProp",
                                  {var, ms, mom, s.lr, s.rho, s.momentum, s.epsilon, grad, indices}, name));
}
Node* ResourceSparseApplyCenteredRMSProp(Output var, Output mg, Output ms, Output mom, const RMSPropScalars& s,
                                         Output grad, Output indices, const NodeName& name) {
  return FinishBeside(var, Update("ResourceSparseApplyCenteredRMSProp",
                                  {var, mg, ms, mom, s.lr, s.rho, s.momentum, s.epsilon, grad, indices}, name));
}
Node* ResourceSparseApplyFtrl(Output var, Output accum, Output linear, Output grad, Output indices,
                              const FtrlScalars& s, const NodeName& name) {
  return FinishBeside(
      var, Update("ResourceSparseApplyFtrl", {var, accum, linear, grad, indices, s.lr, s.l1, s.l2, s.lr_power}, name));
}
Node* ResourceSparseApplyFtrlV2(Output var, Output accum, Output linear, Output grad, Output indices,
                                const FtrlScalars& s, Output l2_shrinkage, const NodeName& name) {
  return FinishBeside(var,
                      Update("ResourceSparseApplyFtrlV2",
                             {var, accum, linear, grad, indices, s.lr, s.l1, s.l2, l2_shrinkage, s.lr_power}, name));
}

}  // namespace ops
}  // namespace cohort
