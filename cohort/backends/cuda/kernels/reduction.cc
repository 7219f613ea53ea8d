// The kernels of reductions over axes. Their launches are in reduction.cu.
#include <algorithm>
#include <memory>

#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/reduction.cu.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/reduction_plan.h"

namespace cohort::cuda {
namespace {

// Returns the same plan for kernels.
ReductionShape ShapeOf(const ReductionPlan& plan) {
  ReductionShape shape;
  shape.outputs = plan.out_elements;
  shape.count = 1;
  for (int d = 0; d < plan.rank; ++d) {
    const auto at = static_cast<size_t>(d);
    ReductionDims& dims = plan.reduced[at] ? shape.reduced : shape.kept;
    dims.dims[dims.rank] = Divider(std::max<int64_t>(plan.dims[at], 1));  // nothing is read along 0
    dims.strides[dims.rank++] = plan.in_stride[at];
    if (plan.reduced[at]) shape.count *= plan.dims[at];
  }
  shape.inner_reduced = plan.rank > 0 && plan.reduced[static_cast<size_t>(plan.rank - 1)];
  return shape;
}

class ReductionKernel final : public OpKernel {
 public:
  ReductionKernel(const KernelConstruction& c, ReductionOp op, ElementType type)
      : op_(op), type_(type), keep_dims_(c.attr<bool>("keep_dims")) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& x = ctx.input(0);
    const ReductionPlan plan = PlanReduction(x.shape(), ctx.input(1), keep_dims_);
    const bool nothing = plan.rank == 0 || (plan.rank == 1 && !plan.reduced[0]);
    if (nothing && x.num_elements() > 0) return ctx.SetOutput(0, x.Reshaped(plan.output));
    Tensor& out = ctx.AllocateOutput(0, plan.output);
    if (plan.out_elements == 0) return;
    const ReductionShape shape = ShapeOf(plan);
    if (op_ == ReductionOp::kMean && shape.count == 0 && IsInteger(x.dtype())) {
      throw InvalidArgumentError("the mean of no integers does not exist");
    }
    const Scratch scratch(call, ReductionBytes(shape));
    LaunchReduction(call.driver(), call.stream(), op_, type_, shape, x.raw_data(), out.raw_data(), scratch.data());
  }

 private:
  const ReductionOp op_;
  const ElementType type_;
  const bool keep_dims_;
};

void RegisterNumbers(KernelRegistry& registry, const char* name, ReductionOp op) {
  registry.Register(name, kGpu, [op](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<ReductionKernel>(c, op, NumberType(c.node.input(0).dtype(), c.node.op_name()));
  });
}

void RegisterLogical(KernelRegistry& registry, const char* name, ReductionOp op) {
  registry.Register(name, kGpu, [op](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<ReductionKernel>(c, op, ElementType::kBool);
  });
}

}  // namespace

void RegisterReductionKernels(KernelRegistry& registry) {
  RegisterNumbers(registry, "Sum", ReductionOp::kSum);
  RegisterNumbers(registry, "Mean", ReductionOp::kMean);
  RegisterNumbers(registry, "Max", ReductionOp::kMax);
  RegisterNumbers(registry, "Min", ReductionOp::kMin);
  RegisterNumbers(registry, "Prod", ReductionOp::kProd);
  RegisterLogical(registry, "All", ReductionOp::kAll);
  RegisterLogical(registry, "Any", ReductionOp::kAny);
}

}  // namespace cohort::cuda
