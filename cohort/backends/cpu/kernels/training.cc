// The kernels of optimizer ops. A rule (update_rules.h) says how one element changes. ApplyDense updates whole
// variables, ApplySparse updates rows; UpdateInputs finds and checks the op's inputs for both. The last kernel decays
// weights.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cohort/backends/cpu/cpu_variable.h"
#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/backends/cpu/kernels/update_rules.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

using cpu::Wide;

int InputNamed(const Node& node, std::string_view name) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_arg(i).name == name) return i;
  }
  return -1;
}

template <size_t N>
std::array<int, N> InputsNamed(const Node& node, const std::array<std::string_view, N>& names) {
  std::array<int, N> inputs{};
  for (size_t i = 0; i < N; ++i) inputs[i] = InputNamed(node, names[i]);
  return inputs;
}

// outs[k][i] from olds[.][i] and g[i]; olds[k] and outs[k] may be the same memory.
template <typename T, size_t N, typename Step>
struct StepBody {
  static COHORT_INLINE void Run(const Step* step, const T* g, const T* const* olds, T* const* outs, int64_t n) {
    const Step change = *step;
    std::array<const T*, N> from;
    std::array<T*, N> to;
    for (size_t k = 0; k < N; ++k) {
      from[k] = olds[k];
      to[k] = outs[k];
    }
    COHORT_INDEPENDENT_PASSES
    for (int64_t i = 0; i < n; ++i) {
      Wide<T> values[N];
      for (size_t k = 0; k < N; ++k) values[k] = static_cast<Wide<T>>(from[k][i]);
      change(static_cast<Wide<T>>(g[i]), values);
      for (size_t k = 0; k < N; ++k) to[k][i] = static_cast<T>(values[k]);
    }
  }
};

// The common part of dense and sparse updates by a rule: finds the op's inputs and checks them.
template <typename Rule>
class UpdateInputs {
 public:
  static constexpr size_t kCount = Rule::kVariables.size();

  explicit UpdateInputs(const Node& node)
      : variables_(InputsNamed(node, Rule::kVariables)),
        scalars_(InputsNamed(node, Rule::kScalars)),
        grad_(std::max(InputNamed(node, "grad"), InputNamed(node, "delta"))),
        indices_(InputNamed(node, "indices")) {}

  std::array<CpuVariable*, kCount> Variables(KernelContext& ctx, DType dtype) const {
    std::array<CpuVariable*, kCount> found;
    for (size_t k = 0; k < kCount; ++k) {
      found[k] = &ResourceOf<CpuVariable>(ctx.input(variables_[k]));
      if (found[k]->dtype() != dtype) {
        throw InvalidArgumentError(StrCat("[kernels/training] expected variable '", found[k]->name(), "' of dtype ",
                                          dtype, "; got ", found[k]->dtype()));
      }
    }
    return found;
  }

  template <typename T>
  auto Bind(const Rule& rule, const KernelContext& ctx) const {
    std::array<Wide<T>, Rule::kScalars.size()> values;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<Wide<T>>(ctx.input(scalars_[i]).template scalar<T>());
    return rule.template Bind<Wide<T>>(values);
  }

  const Tensor& grad(const KernelContext& ctx) const { return ctx.input(grad_); }
  const Tensor& indices(const KernelContext& ctx) const { return ctx.input(indices_); }

 private:
  const std::array<int, kCount> variables_;
  const std::array<int, Rule::kScalars.size()> scalars_;
  const int grad_;
  const int indices_;
};

[[noreturn]] void FailShape(const char* what, const VariableResource& variable, const Shape& expected,
                            const Shape& got) {
  throw InvalidArgumentError(StrCat("[kernels/training] expected ", what, " of shape ", expected, " for variable '",
                                    variable.name(), "'; got ", got));
}

template <typename T, typename Rule>
void ApplyDense(KernelContext& ctx, const Rule& rule, const UpdateInputs<Rule>& inputs) {
  constexpr size_t kCount = UpdateInputs<Rule>::kCount;
  const auto step = inputs.template Bind<T>(rule, ctx);
  const auto variables = inputs.Variables(ctx, kDTypeOf<T>);
  const Tensor& grad = inputs.grad(ctx);
  const auto change = [&](const Tensor* olds, Tensor* outs) {
    std::array<const T*, kCount> from;
    std::array<T*, kCount> to;
    for (size_t k = 0; k < kCount; ++k) {
      if (olds[k].shape() != grad.shape()) {
        k == 0 ? FailShape("a gradient", *variables[0], olds[0].shape(), grad.shape())
               : FailShape("a slot", *variables[k], grad.shape(), olds[k].shape());
      }
      from[k] = olds[k].template data<T>();
      to[k] = outs[k].template data<T>();
    }
    const T* g = grad.data<T>();
    const auto run = cpu::Widest<StepBody<T, kCount, decltype(step)>>();
    cpu::ForBlocks(grad.num_elements(), ctx.num_threads(), [&](int64_t begin, int64_t end) {
      std::array<const T*, kCount> block_from = from;
      std::array<T*, kCount> block_to = to;
      for (size_t k = 0; k < kCount; ++k) {
        block_from[k] += begin;
        block_to[k] += begin;
      }
      run(&step, g + begin, block_from.data(), block_to.data(), end - begin);
    });
  };
  if constexpr (kCount == 1) {
    variables[0]->Update([&](const Tensor& old, Tensor& out) { change(&old, &out); });
  } else {
    std::array<VariableResource*, kCount> all;
    std::copy(variables.begin(), variables.end(), all.begin());
    VariableResource::UpdateTogether(
        all, [&](std::span<const Tensor> olds, std::span<Tensor> outs) { change(olds.data(), outs.data()); });
  }
}

template <typename T, typename Rule>
void ApplySparse(KernelContext& ctx, const Rule& rule, const UpdateInputs<Rule>& inputs) {
  constexpr size_t kCount = UpdateInputs<Rule>::kCount;
  const auto step = inputs.template Bind<T>(rule, ctx);
  auto variables = inputs.Variables(ctx, kDTypeOf<T>);
  const Tensor& grad = inputs.grad(ctx);
  const Tensor& indices = inputs.indices(ctx);
  for (const VariableResource* variable : variables) {
    const Shape shape = variable->shape().IsFullyDefined() ? variable->shape() : variable->value_shape();
    const Shape expected = indices.shape().Concat(shape.Sub(std::min(1, shape.rank()), shape.rank()));
    if (expected != grad.shape()) FailShape("gradient rows", *variable, expected, grad.shape());
  }
  const int64_t n = indices.num_elements();
  if (indices.shape().rank() != 1 || grad.shape().rank() < 1 || grad.shape().dim(0) != n) {
    FailShape("gradient rows", *variables[0], indices.shape(), grad.shape());
  }
  if (n == 0) return;
  const int64_t row = grad.num_elements() / n;
  const T* g = grad.data<T>();
  const auto run = cpu::Widest<StepBody<T, kCount, decltype(step)>>();
  const std::span<CpuVariable* const> slots(variables.data() + 1, kCount - 1);
  variables[0]->UpdateRows(indices, slots, [&](int64_t position, std::span<void* const> rows) {
    std::array<const T*, kCount> from;
    std::array<T*, kCount> to;
    for (size_t k = 0; k < kCount; ++k) from[k] = to[k] = static_cast<T*>(rows[k]);
    run(&step, g + position * row, from.data(), to.data(), row);
  });
}

template <typename Rule, bool kSparse>
class OptimizerKernel final : public OpKernel {
 public:
  explicit OptimizerKernel(const KernelConstruction& c)
      : rule_(c),
        inputs_(c.node),
        apply_(cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(), [](auto tag) -> ApplyFn {
          using T = decltype(tag);
          if constexpr (kSparse) return &ApplySparse<T, Rule>;
          return &ApplyDense<T, Rule>;
        })) {}
  void Compute(KernelContext& ctx) override { apply_(ctx, rule_, inputs_); }

 private:
  using ApplyFn = void (*)(KernelContext&, const Rule&, const UpdateInputs<Rule>&);
  const Rule rule_;
  const UpdateInputs<Rule> inputs_;
  const ApplyFn apply_;
};

// var -= alpha var
template <typename T>
void DecayWeights(KernelContext& ctx, VariableResource& variable) {
  const auto alpha = static_cast<Wide<T>>(ctx.input(1).scalar<T>());
  variable.Update([&](const Tensor& old, Tensor& out) {
    const T* from = old.data<T>();
    T* to = out.data<T>();
    cpu::ForBlocks(old.num_elements(), ctx.num_threads(), [&](int64_t begin, int64_t end) {
      COHORT_INDEPENDENT_PASSES
      for (int64_t i = begin; i < end; ++i) {
        const auto value = static_cast<Wide<T>>(from[i]);
        to[i] = static_cast<T>(value - alpha * value);
      }
    });
  });
}

void ComputeWeightDecay(KernelContext& ctx) {
  auto& variable = ResourceOf<CpuVariable>(ctx.input(0));
  const DType dtype = ctx.input(1).dtype();
  if (variable.dtype() != dtype) {
    throw InvalidArgumentError(StrCat("[kernels/training] expected variable '", variable.name(), "' of dtype ", dtype,
                                      "; got ", variable.dtype()));
  }
  cpu::ForFloating(dtype, "ResourceApplyWeightDecay", [](auto tag) -> void (*)(KernelContext&, VariableResource&) {
    return &DecayWeights<decltype(tag)>;
  })(ctx, variable);
}

template <typename Rule>
void RegisterRule(KernelRegistry& registry, const std::string& name) {
  registry.Register<OptimizerKernel<Rule, false>>("ResourceApply" + name, "CPU");
  registry.Register<OptimizerKernel<Rule, true>>("ResourceSparseApply" + name, "CPU");
}

}  // namespace

void RegisterTrainingKernels(KernelRegistry& registry) {
  registry.Register<OptimizerKernel<cpu::GradientDescentRule, false>>("ResourceApplyGradientDescent", "CPU");
  RegisterRule<cpu::AdamRule>(registry, "Adam");
  RegisterRule<cpu::MomentumRule>(registry, "Momentum");
  RegisterRule<cpu::KerasMomentumRule>(registry, "KerasMomentum");
  RegisterRule<cpu::AdagradRule>(registry, "Adagrad");
  RegisterRule<cpu::AdagradV2Rule>(registry, "AdagradV2");
  registry.Register<OptimizerKernel<cpu::AmsgradRule, false>>("ResourceApplyAdamWithAmsgrad", "CPU");
  registry.RegisterFn("ResourceApplyWeightDecay", "CPU", ComputeWeightDecay);
  RegisterRule<cpu::KerasAdagradRule>(registry, "KerasAdagrad");
  RegisterRule<cpu::RMSPropRule>(registry, "RMSProp");
  RegisterRule<cpu::CenteredRMSPropRule>(registry, "CenteredRMSProp");
  RegisterRule<cpu::FtrlRule>(registry, "Ftrl");
  RegisterRule<cpu::FtrlV2Rule>(registry, "FtrlV2");
}

}  // namespace cohort
