// The kernels of optimizer ops: updates of whole variables and of rows by a rule. Joined updates, also of scatters, are
// one launch. RuleInputs finds and checks the op's inputs for all of them. The scalars of a rule
// (learning rate, momentum, ...) lie in device memory, so that no update waits for the host.
#include "cohort/backends/cuda/kernels/training.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/backends/cpu/kernels/update_rules.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/row_update.h"
#include "cohort/backends/cuda/kernels/scatter.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/kernels/training.cu.h"
#include "cohort/backends/cuda/kernels/variable_update.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/variable_resource.h"
#include "cohort/graph/joined_updates.h"

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

// Where the inputs of an update are. `op` is the op of the update: that of the node, or that of the updates that the
// node joins; then update number u has the inputs from u * count() on. A kernel owns it.
class RuleInputs {
 public:
  RuleInputs(const KernelConstruction& c, const RuleSpec& spec, const OpDef& op)
      : op_(op),
        rule_(spec.rule),
        dtype_(c.attr<DType>("T")),
        flag_(*spec.flag != '\0' && c.attr<bool>(spec.flag)),
        grad_(std::max(Find("grad"), Find("delta"))),
        indices_(Find("indices")) {
    for (const std::string_view name : spec.variables) variables_.push_back(Find(name));
    for (const std::string_view name : spec.scalars) scalars_.push_back(Find(name));
  }

  OptimizerRule rule() const { return rule_; }
  ElementType type() const { return ElementTypeOf(dtype_); }
  // Returns how many inputs an update has.
  int count() const { return static_cast<int>(op_.inputs().size()); }
  // Returns the variables of an update whose first input is `first`. Throws InvalidArgumentError if a variable has
  // another dtype than the op.
  std::vector<VariableResource*> Variables(const KernelContext& ctx, int first = 0) const {
    std::vector<VariableResource*> found;
    for (const int input : variables_) {
      found.push_back(&ResourceOf<VariableResource>(ctx.input(first + input)));
      if (found.back()->dtype() != dtype_) {
        throw InvalidArgumentError(StrCat("[kernels/training] expected variable '", found.back()->name(), "' of dtype ",
                                          dtype_, "; got ", found.back()->dtype()));
      }
    }
    return found;
  }
  // Throws InvalidArgumentError if a scalar does not have one element.
  RuleArgs Args(const KernelContext& ctx) const {
    RuleArgs args;
    for (size_t k = 0; k < scalars_.size(); ++k) {
      const Tensor& value = ctx.input(scalars_[k]);
      if (value.num_elements() != 1) {
        throw InvalidArgumentError(StrCat("[kernels/training] expected one element for ",
                                          op_.inputs()[static_cast<size_t>(scalars_[k])].name, "; got shape ",
                                          value.shape()));
      }
      args.scalars[k] = value.raw_data();
    }
    args.flag = flag_;
    return args;
  }
  bool has_grad() const { return grad_ >= 0; }
  const Tensor& grad(const KernelContext& ctx, int first = 0) const { return ctx.input(first + grad_); }
  const Tensor& indices(const KernelContext& ctx, int first = 0) const { return ctx.input(first + indices_); }

 private:
  int Find(std::string_view name) const {
    for (size_t i = 0; i < op_.inputs().size(); ++i) {
      if (op_.inputs()[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

  const OpDef& op_;
  const OptimizerRule rule_;
  const DType dtype_;
  const bool flag_;
  const int grad_;
  const int indices_;
  std::vector<int> variables_;
  std::vector<int> scalars_;
};

// One update of a whole variable and its slots, or several joined ones, of different variables.
class DenseUpdateKernel final : public OpKernel {
 public:
  DenseUpdateKernel(const KernelConstruction& c, const RuleSpec& spec, const OpDef& op, size_t updates)
      : inputs_(c, spec, op), updates_(updates) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    std::vector<VariableResource*> variables;
    for (size_t u = 0; u < updates_; ++u) {
      const std::vector<VariableResource*> its = inputs_.Variables(ctx, FirstInput(u));
      variables.insert(variables.end(), its.begin(), its.end());
    }
    RuleArgs shared = inputs_.Args(ctx);
    UpdateVariables(call, variables, [&](std::span<const Tensor> olds, std::span<Tensor> outs, const ErrorWord* error) {
      shared.error = error;
      std::vector<DenseUpdate> updates;
      const size_t of_each = olds.size() / updates_;
      for (size_t u = 0, v = 0; u < updates_; ++u, v += of_each) {
        updates.push_back(
            Describe(ctx, FirstInput(u), &variables[v], olds.subspan(v, of_each), outs.subspan(v, of_each)));
      }
      LaunchDenseUpdates(call.driver(), call.stream(), inputs_.rule(), inputs_.type(), shared, updates.data(),
                         static_cast<int>(updates.size()));
    });
  }

 private:
  int FirstInput(size_t update) const { return static_cast<int>(update) * inputs_.count(); }

  // Throws InvalidArgumentError if the shapes do not fit.
  DenseUpdate Describe(const KernelContext& ctx, int first_input, VariableResource* const* variables,
                       std::span<const Tensor> olds, std::span<Tensor> outs) const {
    const Tensor* grad = inputs_.has_grad() ? &inputs_.grad(ctx, first_input) : nullptr;
    const Shape& shape = grad != nullptr ? grad->shape() : olds[0].shape();
    DenseUpdate update;
    for (size_t k = 0; k < olds.size(); ++k) {
      if (olds[k].shape() != shape) {
        k == 0 ? FailShape("a gradient", *variables[0], olds[0].shape(), shape)
               : FailShape("a slot", *variables[k], shape, olds[k].shape());
      }
      update.olds[k] = olds[k].raw_data();
      update.outs[k] = outs[k].raw_data();
    }
    update.grad = grad != nullptr ? grad->raw_data() : nullptr;
    update.n = olds[0].num_elements();
    return update;
  }

  const RuleInputs inputs_;
  const size_t updates_;
};

// One update of rows of a variable and its slots, or several joined ones, of different variables.
class SparseUpdateKernel final : public OpKernel {
 public:
  SparseUpdateKernel(const KernelConstruction& c, const RuleSpec& spec, const OpDef& op, size_t updates)
      : inputs_(c, spec, op), updates_(updates), range_(RangeOfRows(c.node)) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    std::vector<RowUpdate> updates;
    for (size_t u = 0; u < updates_; ++u) {
      const RowUpdate& update =
          updates.emplace_back(RowUpdate{inputs_.Variables(ctx, FirstInput(u)), &inputs_.indices(ctx, FirstInput(u))});
      const Shape& indices = update.indices->shape();
      const Shape& grad = inputs_.grad(ctx, FirstInput(u)).shape();
      if (indices.rank() != 1 || grad.rank() < 1 || grad.dim(0) != indices.dim(0)) {
        FailShape("gradient rows", *update.variables[0], indices, grad);
      }
    }
    RuleArgs shared = inputs_.Args(ctx);
    UpdateRows(
        call, updates, range_,
        [&](std::span<const RowChange> changes, const uint64_t* error) {
          std::vector<SparseUpdate> ready;
          for (const RowChange& change : changes) {
            SparseUpdate update;
            for (size_t k = 0; k < change.values.size(); ++k) update.variables[k] = change.values[k].raw_data();
            update.grad = inputs_.grad(ctx, FirstInput(change.update)).raw_data();
            update.rows = change.rows;
            ready.push_back(update);
          }
          shared.error = error;
          LaunchSparseUpdates(call.driver(), call.stream(), inputs_.rule(), inputs_.type(), shared, ready.data(),
                              static_cast<int>(ready.size()));
        },
        [&](size_t u, std::span<const Tensor> values) { CheckRows(ctx, FirstInput(u), updates[u], values); });
  }

 private:
  int FirstInput(size_t update) const { return static_cast<int>(update) * inputs_.count(); }

  // Throws InvalidArgumentError if the gradient does not have the rows that the values need.
  void CheckRows(const KernelContext& ctx, int first_input, const RowUpdate& update,
                 std::span<const Tensor> values) const {
    const Shape& indices = update.indices->shape();
    const Shape& grad = inputs_.grad(ctx, first_input).shape();
    for (size_t k = 0; k < values.size(); ++k) {
      const Shape& shape = values[k].shape();
      const Shape expected = indices.Concat(shape.Sub(std::min(1, shape.rank()), shape.rank()));
      if (expected != grad) FailShape("gradient rows", *update.variables[k], expected, grad);
    }
  }

  const RuleInputs inputs_;
  const size_t updates_;
  const IndexRange range_;
};

// The rules by the ends of the names of their ops: "Adam" is ResourceApplyAdam and, if `sparse`, also
// ResourceSparseApplyAdam.
struct NamedRule {
  const char* name;
  RuleSpec spec;
  bool sparse;
};

const std::vector<NamedRule>& Rules() {
  using Rule = OptimizerRule;
  static const auto* const rules = [] {
    const RuleSpec descent = SpecOf<cpu::GradientDescentRule>(Rule::kGradientDescent);
    return new std::vector<NamedRule>{
        {"GradientDescent", descent, false},
        {"WeightDecay", {Rule::kWeightDecay, descent.variables, descent.scalars, ""}, false},
        {"Adam", SpecOf<cpu::AdamRule>(Rule::kAdam, "use_nesterov"), true},
        {"AdamWithAmsgrad", SpecOf<cpu::AmsgradRule>(Rule::kAmsgrad), false},
        {"Momentum", SpecOf<cpu::MomentumRule>(Rule::kMomentum, "use_nesterov"), true},
        {"KerasMomentum", SpecOf<cpu::KerasMomentumRule>(Rule::kKerasMomentum, "use_nesterov"), true},
        {"Adagrad", SpecOf<cpu::AdagradRule>(Rule::kAdagrad, "update_slots"), true},
        {"AdagradV2", SpecOf<cpu::AdagradV2Rule>(Rule::kAdagradV2, "update_slots"), true},
        {"KerasAdagrad", SpecOf<cpu::KerasAdagradRule>(Rule::kKerasAdagrad), true},
        {"RMSProp", SpecOf<cpu::RMSPropRule>(Rule::kRMSProp), true},
        {"CenteredRMSProp", SpecOf<cpu::CenteredRMSPropRule>(Rule::kCenteredRMSProp), true},
        {"Ftrl", SpecOf<cpu::FtrlRule>(Rule::kFtrl, "multiply_linear_by_lr"), true},
        {"FtrlV2", SpecOf<cpu::FtrlV2Rule>(Rule::kFtrlV2, "multiply_linear_by_lr"), true}};
  }();
  return *rules;
}

constexpr std::string_view kDense = "ResourceApply", kSparse = "ResourceSparseApply";

// Returns the rule of an op whose name begins with `kind`, or null if the op has no kernel here.
const RuleSpec* FindRule(std::string_view op, std::string_view kind) {
  if (!op.starts_with(kind)) return nullptr;
  for (const NamedRule& rule : Rules()) {
    if (rule.name == op.substr(kind.size()) && (kind == kDense || rule.sparse)) return &rule.spec;
  }
  return nullptr;
}

// Makes the kernel of a node that stands for so many updates by an op for which CanJoinUpdates returns true.
std::unique_ptr<OpKernel> MakeUpdates(const KernelConstruction& c, const OpDef& op, size_t updates) {
  if (IsScatter(op.name())) return MakeScatter(c, op.name(), updates);
  if (const RuleSpec* spec = FindRule(op.name(), kSparse)) {
    return std::make_unique<SparseUpdateKernel>(c, *spec, op, updates);
  }
  return std::make_unique<DenseUpdateKernel>(c, *FindRule(op.name(), kDense), op, updates);
}

std::unique_ptr<OpKernel> MakeJoined(const KernelConstruction& c) {
  const JoinedUpdates joined = *FindJoinedUpdates(c.node);
  const size_t inputs = joined.names.size() * joined.op->inputs().size();
  if (!CanJoinUpdates(joined.op->name()) || inputs != static_cast<size_t>(c.node.num_inputs())) {
    throw InvalidArgumentError(StrCat("[kernels/training] expected joined updates of variables, with ", inputs,
                                      " inputs; got ", joined.op->name(), " with ", c.node.num_inputs()));
  }
  return MakeUpdates(c, *joined.op, joined.names.size());
}

}  // namespace

bool CanJoinUpdates(std::string_view op) {
  return IsScatter(op) || FindRule(op, kSparse) != nullptr || FindRule(op, kDense) != nullptr;
}

void RegisterTrainingKernels(KernelRegistry& registry) {
  const auto make_one = [](const KernelConstruction& c) { return MakeUpdates(c, c.node.op(), 1); };
  for (const NamedRule& rule : Rules()) {
    registry.Register(StrCat(kDense, rule.name), kGpu, make_one);
    if (rule.sparse) registry.Register(StrCat(kSparse, rule.name), kGpu, make_one);
  }
  for (const std::string_view scatter : kScatterOps) registry.Register(std::string(scatter), kGpu, make_one);
  registry.Register(kJoinedUpdates, kGpu, MakeJoined);
}

}  // namespace cohort::cuda
