// The kernels of BiasAdd, BiasAddGrad, L2Loss and InTopKV2. Their launches are in nn.cu.
#include <string>

#include "cohort/backends/cuda/kernels/bias.h"
#include "cohort/backends/cuda/kernels/nn.cu.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scratch.h"

namespace cohort::cuda {
namespace {

ChannelView ViewOf(const Shape& shape, bool channels_first) {
  if (shape.rank() < 2) {
    throw InvalidArgumentError(StrCat("[kernels/nn] expected a tensor of rank 2 or more; got ", shape));
  }
  const int axis = channels_first ? 1 : shape.rank() - 1;
  return {shape.Sub(0, axis).num_elements(), shape.dim(axis), shape.Sub(axis + 1, shape.rank()).num_elements()};
}

void SumChannels(const CudaCall& call, const Tensor& value, const ChannelView& view, Tensor& sums) {
  if (view.size() == 0) return FillZero(call, sums);
  const ElementType type = ElementTypeOf(value.dtype());
  const Scratch scratch(call, BiasAddGradBytes(type, view));
  LaunchBiasAddGrad(call.driver(), call.stream(), type, view, value.raw_data(), sums.raw_data(), scratch.data());
}

class BiasAddKernel final : public OpKernel {
 public:
  explicit BiasAddKernel(const KernelConstruction& c)
      : channels_first_(c.attr<std::string>("data_format") == "NCHW"), type_(ElementTypeOf(c.attr<DType>("T"))) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& value = ctx.input(0);
    const Tensor& bias = ctx.input(1);
    const ChannelView view = ViewOf(value.shape(), channels_first_);
    if (bias.shape() != Shape{view.channels}) {
      throw InvalidArgumentError(StrCat("[kernels/nn] expected a bias of shape [", view.channels,
                                        "] for a value of shape ", value.shape(), "; got ", bias.shape()));
    }
    Tensor& out = ctx.ForwardInputOrAllocate(0, 0, value.shape());
    if (view.size() == 0) return;
    LaunchBiasAdd(call.driver(), call.stream(), type_, Activation::kNone, view, value.raw_data(), bias.raw_data(),
                  out.raw_data());
  }

 private:
  const bool channels_first_;
  const ElementType type_;
};

class BiasAddGradKernel final : public OpKernel {
 public:
  explicit BiasAddGradKernel(const KernelConstruction& c)
      : channels_first_(c.attr<std::string>("data_format") == "NCHW") {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& value = ctx.input(0);
    const ChannelView view = ViewOf(value.shape(), channels_first_);
    SumChannels(call, value, view, ctx.AllocateOutput(0, Shape{view.channels}));
  }

 private:
  const bool channels_first_;
};

class L2LossKernel final : public OpKernel {
 public:
  explicit L2LossKernel(const KernelConstruction& c) : type_(ElementTypeOf(c.attr<DType>("T"))) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& value = ctx.input(0);
    Tensor& loss = ctx.AllocateOutput(0, Shape());
    const int64_t n = value.num_elements();
    if (n == 0) return FillZero(call, loss);
    const Scratch scratch(call, L2LossBytes(type_, n));
    LaunchL2Loss(call.driver(), call.stream(), type_, n, value.raw_data(), loss.raw_data(), scratch.data());
  }

 private:
  const ElementType type_;
};

class InTopKKernel final : public OpKernel {
 public:
  explicit InTopKKernel(const KernelConstruction& c) : type_(ElementTypeOf(c.attr<DType>("T"))) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& predictions = ctx.input(0);
    const Tensor& targets = ctx.input(1);
    if (predictions.shape().rank() != 2 || targets.shape() != predictions.shape().Sub(0, 1)) {
      throw InvalidArgumentError(StrCat("[kernels/nn] expected predictions [batch, classes] and targets [batch]; got ",
                                        predictions.shape(), " and ", targets.shape()));
    }
    Tensor& out = ctx.AllocateOutput(0, targets.shape());
    if (out.num_elements() == 0) return;
    LaunchInTopK(call.driver(), call.stream(), type_, targets.num_elements(), predictions.shape().dim(1),
                 static_cast<const float*>(predictions.raw_data()), targets.raw_data(), ctx.input(2).raw_data(),
                 static_cast<bool*>(out.raw_data()));
  }

 private:
  const ElementType type_;
};

}  // namespace

void AddBias(const CudaCall& call, Activation activation, const Tensor& bias, Tensor& value) {
  const ChannelView view = ViewOf(value.shape(), false);
  if (view.size() == 0) return;
  LaunchBiasAdd(call.driver(), call.stream(), ElementTypeOf(value.dtype()), activation, view, value.raw_data(),
                bias.raw_data(), value.raw_data());
}

void SumToBias(const CudaCall& call, const Tensor& value, Tensor& sums) {
  SumChannels(call, value, ViewOf(value.shape(), false), sums);
}

void RegisterNnKernels(KernelRegistry& registry) {
  registry.Register<BiasAddKernel>("BiasAdd", kGpu);
  registry.Register<BiasAddGradKernel>("BiasAddGrad", kGpu);
  registry.Register<L2LossKernel>("L2Loss", kGpu);
  registry.Register<InTopKKernel>("InTopKV2", kGpu);
}

}  // namespace cohort::cuda
