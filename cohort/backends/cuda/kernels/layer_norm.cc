// The kernels of LayerNorm and its gradient. Their launches are in layer_norm.cu.
#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/layer_norm.cu.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/layer_norm_sizes.h"

namespace cohort::cuda {
namespace {

class LayerNormKernel final : public OpKernel {
 public:
  explicit LayerNormKernel(const KernelConstruction& c)
      : type_(FloatingType(c.attr<DType>("T"), c.node.op_name())), epsilon_(c.attr<float>("epsilon")) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape shape = ctx.input(0).shape();
    const LayerNormSizes sizes = LayerNormSizes::OfForward(ctx);
    NormalizedRows rows{ctx.input(0).raw_data(), ctx.input(1).raw_data(), nullptr, nullptr, sizes.rows, sizes.columns};
    Tensor& y = ctx.ForwardInputOrAllocate(0, 0, shape);
    rows.mean = ctx.AllocateOutput(1, sizes.statistics).raw_data();
    rows.inverse = ctx.AllocateOutput(2, sizes.statistics).raw_data();
    if (sizes.rows == 0) return;
    LaunchLayerNorm(call.driver(), call.stream(), type_, rows, ctx.input(2).raw_data(), epsilon_, y.raw_data());
  }

 private:
  const ElementType type_;
  const float epsilon_;
};

class LayerNormGradKernel final : public OpKernel {
 public:
  explicit LayerNormGradKernel(const KernelConstruction& c)
      : type_(FloatingType(c.attr<DType>("T"), c.node.op_name())) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape shape = ctx.input(1).shape();
    const LayerNormSizes sizes = LayerNormSizes::OfGradient(ctx);
    const void* dy = ctx.input(0).raw_data();
    const NormalizedRows rows{ctx.input(1).raw_data(),
                              ctx.input(2).raw_data(),
                              const_cast<void*>(ctx.input(3).raw_data()),
                              const_cast<void*>(ctx.input(4).raw_data()),
                              sizes.rows,
                              sizes.columns};
    Tensor& dx = ctx.ForwardInputOrAllocate({0, 1}, 0, shape);
    Tensor& d_scale = ctx.AllocateOutput(1, Shape{sizes.columns});
    Tensor& d_offset = ctx.AllocateOutput(2, Shape{sizes.columns});
    if (dx.num_elements() == 0) {
      FillZero(call, d_scale);
      return FillZero(call, d_offset);
    }
    // The sums come first, because dx may overwrite what they read.
    const Scratch scratch(call, LayerNormBytes(sizes.rows, sizes.columns));
    LaunchLayerNormSums(call.driver(), call.stream(), type_, rows, dy, d_scale.raw_data(), d_offset.raw_data(),
                        scratch.data());
    LaunchLayerNormGradient(call.driver(), call.stream(), type_, rows, dy, dx.raw_data());
  }

 private:
  const ElementType type_;
};

}  // namespace

void RegisterLayerNormKernels(KernelRegistry& registry) {
  registry.Register<LayerNormKernel>("LayerNorm", kGpu);
  registry.Register<LayerNormGradKernel>("LayerNormGrad", kGpu);
}

}  // namespace cohort::cuda
