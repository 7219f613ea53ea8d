// Cumsum, Cumprod, ArgMax and ArgMin: ops that go along an axis.
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scan.cu.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

AxisView ViewOf(const Shape& shape, int axis) {
  return {shape.Sub(0, axis).num_elements(), shape.dim(axis), shape.Sub(axis + 1, shape.rank()).num_elements()};
}

template <ScanOp kOp>
class ScanKernel final : public OpKernel {
 public:
  explicit ScanKernel(const KernelConstruction& c)
      : exclusive_(c.attr<bool>("exclusive")), reverse_(c.attr<bool>("reverse")) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& x = ctx.input(0);
    const int axis = ops::NormalizeAxis(ops::IntegerScalar(ctx.input(1), "axis"), x.shape().rank());
    Tensor& out = ctx.AllocateOutput(0, x.shape());
    if (out.num_elements() == 0) return;
    LaunchScan(call.driver(), call.stream(), kOp, ElementTypeOf(x.dtype()),
               {x.raw_data(), out.raw_data(), ViewOf(x.shape(), axis), exclusive_, reverse_});
  }

 private:
  const bool exclusive_;
  const bool reverse_;
};

template <bool kLargest>
void ArgExtremum(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& x = ctx.input(0);
  const Shape& shape = x.shape();
  const int axis = ops::NormalizeAxis(ops::IntegerScalar(ctx.input(1), "dimension"), shape.rank(), "dimension");
  if (shape.dim(axis) == 0) {
    throw InvalidArgumentError(StrCat("Reduction axis ", axis, " is empty in shape ", shape));
  }
  Tensor& out = ctx.AllocateOutput(0, shape.Sub(0, axis).Concat(shape.Sub(axis + 1, shape.rank())));
  if (out.num_elements() == 0) return;
  LaunchArgExtremum(call.driver(), call.stream(), ElementTypeOf(x.dtype()), ElementTypeOf(out.dtype()),
                    {x.raw_data(), out.raw_data(), ViewOf(shape, axis), kLargest});
}

}  // namespace

void RegisterScanKernels(KernelRegistry& registry) {
  registry.Register<ScanKernel<ScanOp::kSum>>("Cumsum", kGpu);
  registry.Register<ScanKernel<ScanOp::kProduct>>("Cumprod", kGpu);
  registry.RegisterFn("ArgMax", kGpu, ArgExtremum<true>);
  registry.RegisterFn("ArgMin", kGpu, ArgExtremum<false>);
}

}  // namespace cohort::cuda
