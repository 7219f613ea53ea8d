// The kernels of comparisons and of logical ops. Their launches are in comparison.cu.
#include <memory>
#include <utility>

#include "cohort/backends/cuda/kernels/binary_call.h"
#include "cohort/backends/cuda/kernels/comparison.cu.h"
#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

class ComparisonKernel final : public OpKernel {
 public:
  ComparisonKernel(ComparisonOp op, ElementType type) : op_(op), type_(type) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const BinaryArgs args = PrepareBinary(ctx);
    if (args.n > 0) LaunchComparison(call.driver(), call.stream(), op_, type_, args);
  }

 private:
  const ComparisonOp op_;
  const ElementType type_;
};

// If shapes do not broadcast and the node says that this is no error, the result is one scalar: not equal.
class LenientEquality final : public OpKernel {
 public:
  LenientEquality(std::unique_ptr<OpKernel> strict, bool unequal) : strict_(std::move(strict)), unequal_(unequal) {}
  void Compute(KernelContext& ctx) override {
    if (ops::CanBroadcast(ctx.input(0).shape(), ctx.input(1).shape())) return strict_->Compute(ctx);
    const CudaCall call(ctx);
    Tensor& out = ctx.AllocateOutput(0, Shape());
    call.driver().FillAsync(out.raw_data(), unequal_ ? 1 : 0, sizeof(bool), call.stream());
  }

 private:
  const std::unique_ptr<OpKernel> strict_;
  const bool unequal_;
};

void RegisterOrder(KernelRegistry& registry, const char* name, ComparisonOp op) {
  registry.Register(name, kGpu, [op](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<ComparisonKernel>(op, NumberType(c.node.input(0).dtype(), c.node.op_name()));
  });
}

void RegisterLogical(KernelRegistry& registry, const char* name, ComparisonOp op) {
  registry.Register(name, kGpu, [op](const KernelConstruction&) -> std::unique_ptr<OpKernel> {
    return std::make_unique<ComparisonKernel>(op, ElementType::kBool);
  });
}

// Strings lie in host memory.
void RegisterEquality(KernelRegistry& registry, const char* name, ComparisonOp op) {
  registry.Register(name, kGpu, [op](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    const DType dtype = c.node.input(0).dtype();
    if (dtype == DType::kString) return MakeHostFallback(KernelRegistry::Global(), c);
    std::unique_ptr<OpKernel> kernel =
        std::make_unique<ComparisonKernel>(op, NumberOrBoolType(dtype, c.node.op_name()));
    if (c.attr<bool>("incompatible_shape_error")) return kernel;
    return std::make_unique<LenientEquality>(std::move(kernel), op == ComparisonOp::kNotEqual);
  });
}

}  // namespace

void RegisterComparisonKernels(KernelRegistry& registry) {
  RegisterEquality(registry, "Equal", ComparisonOp::kEqual);
  RegisterEquality(registry, "NotEqual", ComparisonOp::kNotEqual);
  RegisterOrder(registry, "Less", ComparisonOp::kLess);
  RegisterOrder(registry, "LessEqual", ComparisonOp::kLessEqual);
  RegisterOrder(registry, "Greater", ComparisonOp::kGreater);
  RegisterOrder(registry, "GreaterEqual", ComparisonOp::kGreaterEqual);
  RegisterLogical(registry, "LogicalAnd", ComparisonOp::kLogicalAnd);
  RegisterLogical(registry, "LogicalOr", ComparisonOp::kLogicalOr);
}

}  // namespace cohort::cuda
