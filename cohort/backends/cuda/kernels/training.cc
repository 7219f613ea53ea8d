// The kernels of optimizer ops: updates of whole variables and of rows by a rule. RuleInputs finds and checks the op's
// inputs for both. The scalars of a rule (learning rate, momentum, ...) lie in device memory, so that no update waits
// for the host.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/backends/cpu/kernels/update_rules.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/row_update.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/kernels/training.cu.h"
#include "cohort/backends/cuda/kernels/variable_update.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/variable_resource.h"

namespace cohort::cuda {
namespace {

// A rule, as its ops name their inputs and the attribute that is its flag (empty: none).
struct RuleSpec {
  OptimizerRule rule;
  std::span<const std::string_view> variables;
  std::span<const std::string_view> scalars;
  const char* flag;
};

// The names are those of the CPU's rule.
template <typename CpuRule>
RuleSpec SpecOf(OptimizerRule rule, const char* flag = "") {
  static_assert(CpuRule::kVariables.size() <= kMostRuleVariables && CpuRule::kScalars.size() <= kMostRuleScalars);
  return {rule, CpuRule::kVariables, CpuRule::kScalars, flag};
}

[[noreturn]] void FailShape(const char* what, const VariableResource& variable, const Shape& expected,
                            const Shape& got) {
  throw InvalidArgumentError(StrCat("[kernels/training] expected ", what, " of shape ", expected, " for variable '",
                                    variable.name(), "'; got ", got));
}

// Where an op's inputs are. A kernel owns it.
class RuleInputs {
 public:
  RuleInputs(const KernelConstruction& c, const RuleSpec& spec)
      : rule_(spec.rule),
        dtype_(c.attr<DType>("T")),
        flag_(*spec.flag != '\0' && c.attr<bool>(spec.flag)),
        grad_(std::max(Find(c.node, "grad"), Find(c.node, "delta"))),
        indices_(Find(c.node, "indices")) {
    for (const std::string_view name : spec.variables) variables_.push_back(Find(c.node, name));
    for (const std::string_view name : spec.scalars) scalars_.push_back(Find(c.node, name));
  }

  OptimizerRule rule() const { return rule_; }
  ElementType type() const { return ElementTypeOf(dtype_); }
  // Throws InvalidArgumentError if a variable has another dtype than the op.
  std::vector<VariableResource*> Variables(const KernelContext& ctx) const {
    std::vector<VariableResource*> found;
    for (const int input : variables_) {
      found.push_back(&ResourceOf<VariableResource>(ctx.input(input)));
      if (found.back()->dtype() != dtype_) {
        throw InvalidArgumentError(StrCat("[kernels/training] expected variable '", found.back()->name(), "' of dtype ",
                                          dtype_, "; got ", found.back()->dtype()));
      }
    }
    return found;
  }
  // Throws InvalidArgumentError if a scalar does not have one element.
  RuleArgs Args(const KernelContext& ctx, const uint64_t* error) const {
    RuleArgs args;
    for (size_t k = 0; k < scalars_.size(); ++k) {
      const Tensor& value = ctx.input(scalars_[k]);
      if (value.num_elements() != 1) {
        throw InvalidArgumentError(StrCat("[kernels/training] expected one element for ",
                                          ctx.node().input_arg(scalars_[k]).name, "; got shape ", value.shape()));
      }
      args.scalars[k] = value.raw_data();
    }
    args.error = error;
    args.flag = flag_;
    return args;
  }
  bool has_grad() const { return grad_ >= 0; }
  const Tensor& grad(const KernelContext& ctx) const { return ctx.input(grad_); }
  const Tensor& indices(const KernelContext& ctx) const { return ctx.input(indices_); }

 private:
  static int Find(const Node& node, std::string_view name) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (node.input_arg(i).name == name) return i;
    }
    return -1;
  }

  const OptimizerRule rule_;
  const DType dtype_;
  const bool flag_;
  const int grad_;
  const int indices_;
  std::vector<int> variables_;
  std::vector<int> scalars_;
};

class DenseUpdateKernel final : public OpKernel {
 public:
  DenseUpdateKernel(const KernelConstruction& c, const RuleSpec& spec) : inputs_(c, spec) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const std::vector<VariableResource*> variables = inputs_.Variables(ctx);
    const RuleArgs shared = inputs_.Args(ctx, call.error_word());
    UpdateVariables(call, variables, [&](std::span<const Tensor> olds, std::span<Tensor> outs) {
      const Shape& shape = inputs_.has_grad() ? inputs_.grad(ctx).shape() : olds[0].shape();
      DenseUpdate update;
      for (size_t k = 0; k < olds.size(); ++k) {
        if (olds[k].shape() != shape) {
          k == 0 ? FailShape("a gradient", *variables[0], olds[0].shape(), shape)
                 : FailShape("a slot", *variables[k], shape, olds[k].shape());
        }
        update.olds[k] = olds[k].raw_data();
        update.outs[k] = outs[k].raw_data();
      }
      update.grad = inputs_.has_grad() ? inputs_.grad(ctx).raw_data() : nullptr;
      update.n = olds[0].num_elements();
      LaunchDenseUpdates(call.driver(), call.stream(), inputs_.rule(), inputs_.type(), shared, &update, 1);
    });
  }

 private:
  const RuleInputs inputs_;
};

class SparseUpdateKernel final : public OpKernel {
 public:
  SparseUpdateKernel(const KernelConstruction& c, const RuleSpec& spec) : inputs_(c, spec) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const std::vector<VariableResource*> variables = inputs_.Variables(ctx);
    const Tensor& grad = inputs_.grad(ctx);
    const Tensor& indices = inputs_.indices(ctx);
    const int64_t n = indices.num_elements();
    if (indices.shape().rank() != 1 || grad.shape().rank() < 1 || grad.shape().dim(0) != n) {
      FailShape("gradient rows", *variables[0], indices.shape(), grad.shape());
    }
    RuleArgs shared = inputs_.Args(ctx, nullptr);
    UpdateRows(
        call, variables, indices,
        [&](std::span<Tensor> values, const RowOrder& order, const uint64_t* error) {
          if (grad.num_elements() == 0) return;
          SparseUpdate update;
          for (size_t k = 0; k < values.size(); ++k) update.variables[k] = values[k].raw_data();
          update.grad = grad.raw_data();
          update.order = order;
          update.n = n;
          update.columns = grad.num_elements() / n;
          shared.error = error;
          LaunchSparseUpdate(call.driver(), call.stream(), inputs_.rule(), inputs_.type(), shared, update);
        },
        [&](std::span<const Tensor> olds) {
          for (size_t k = 0; k < olds.size(); ++k) {
            const Shape& shape = olds[k].shape();
            const Shape expected = indices.shape().Concat(shape.Sub(std::min(1, shape.rank()), shape.rank()));
            if (expected != grad.shape()) FailShape("gradient rows", *variables[k], expected, grad.shape());
          }
        });
  }

 private:
  const RuleInputs inputs_;
};

template <typename Kernel>
void RegisterAs(KernelRegistry& registry, const std::string& op, const RuleSpec& spec) {
  registry.Register(op, kGpu, [spec](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<Kernel>(c, spec);
  });
}

void RegisterDense(KernelRegistry& registry, const std::string& name, const RuleSpec& spec) {
  RegisterAs<DenseUpdateKernel>(registry, "ResourceApply" + name, spec);
}

void RegisterBoth(KernelRegistry& registry, const std::string& name, const RuleSpec& spec) {
  RegisterDense(registry, name, spec);
  RegisterAs<SparseUpdateKernel>(registry, "ResourceSparseApply" + name, spec);
}

}  // namespace

void RegisterTrainingKernels(KernelRegistry& registry) {
  using Rule = OptimizerRule;
  const RuleSpec descent = SpecOf<cpu::GradientDescentRule>(Rule::kGradientDescent);
  RegisterDense(registry, "GradientDescent", descent);
  RegisterDense(registry, "WeightDecay", {Rule::kWeightDecay, descent.variables, descent.scalars, ""});
  RegisterDense(registry, "Adam", SpecOf<cpu::AdamRule>(Rule::kAdam, "use_nesterov"));
  RegisterDense(registry, "AdamWithAmsgrad", SpecOf<cpu::AmsgradRule>(Rule::kAmsgrad));
  RegisterBoth(registry, "Momentum", SpecOf<cpu::MomentumRule>(Rule::kMomentum, "use_nesterov"));
  RegisterBoth(registry, "KerasMomentum", SpecOf<cpu::KerasMomentumRule>(Rule::kKerasMomentum, "use_nesterov"));
  RegisterBoth(registry, "Adagrad", SpecOf<cpu::AdagradRule>(Rule::kAdagrad, "update_slots"));
  RegisterBoth(registry, "AdagradV2", SpecOf<cpu::AdagradV2Rule>(Rule::kAdagradV2, "update_slots"));
  RegisterBoth(registry, "KerasAdagrad", SpecOf<cpu::KerasAdagradRule>(Rule::kKerasAdagrad));
  RegisterBoth(registry, "RMSProp", SpecOf<cpu::RMSPropRule>(Rule::kRMSProp));
  RegisterBoth(registry, "CenteredRMSProp", SpecOf<cpu::CenteredRMSPropRule>(Rule::kCenteredRMSProp));
  RegisterBoth(registry, "Ftrl", SpecOf<cpu::FtrlRule>(Rule::kFtrl, "multiply_linear_by_lr"));
  RegisterBoth(registry, "FtrlV2", SpecOf<cpu::FtrlV2Rule>(Rule::kFtrlV2, "multiply_linear_by_lr"));
}

}  // namespace cohort::cuda
