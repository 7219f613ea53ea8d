// Batch normalization and its gradient. Their launches are in batch_norm.cu.
#include "cohort/backends/cuda/kernels/batch_norm.cu.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scratch.h"

namespace cohort::cuda {
namespace {

void CheckChannels(const KernelContext& ctx, int input, int64_t channels) {
  const Shape& shape = ctx.input(input).shape();
  if (shape == Shape{channels}) return;
  throw InvalidArgumentError(StrCat("[kernels/batch_norm] expected ", ctx.node().input_arg(input).name, " of shape [",
                                    channels, "]; got ", shape));
}

const float* Floats(const Tensor& tensor) { return static_cast<const float*>(tensor.raw_data()); }
float* Floats(Tensor& tensor) { return static_cast<float*>(tensor.raw_data()); }

class BatchNormBase : public OpKernel {
 protected:
  explicit BatchNormBase(const KernelConstruction& c)
      : type_(ElementTypeOf(c.attr<DType>("T"))),
        epsilon_(c.attr<float>("epsilon")),
        training_(c.attr<bool>("is_training")) {}

  // Returns the sizes of the images; one of them may be 0.
  static BatchSizes SizesOf(const Shape& x) {
    if (x.rank() == 4) return {x.Sub(0, 3).num_elements(), x.dim(3)};
    throw InvalidArgumentError(
        StrCat("[kernels/batch_norm] expected x of shape [batch, rows, columns, channels]; got ", x));
  }

  ElementType type() const { return type_; }
  float epsilon() const { return epsilon_; }
  bool training() const { return training_; }

 private:
  const ElementType type_;
  const float epsilon_;
  const bool training_;
};

class BatchNormKernel final : public BatchNormBase {
 public:
  explicit BatchNormKernel(const KernelConstruction& c)
      : BatchNormBase(c), factor_(c.attr<float>("exponential_avg_factor")) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& x = ctx.input(0);
    const BatchSizes sizes = SizesOf(x.shape());
    const bool reads_given = !training() || factor_ != 1.0f;
    for (int i = 1; i < (reads_given ? 5 : 3); ++i) CheckChannels(ctx, i, sizes.channels);
    Tensor& y = ctx.AllocateOutput(0, x.shape());
    FillZero(call, ctx.AllocateOutput(5, Shape{}));
    if (training()) {
      Train(call, sizes, x, y);
    } else {
      for (const int output : {1, 3}) ctx.SetOutput(output, ctx.input(3));
      for (const int output : {2, 4}) ctx.SetOutput(output, ctx.input(4));
      if (x.num_elements() > 0) Normalize(call, sizes, x, Floats(ctx.input(3)), Floats(ctx.input(4)), y);
    }
  }

 private:
  void Train(const CudaCall& call, const BatchSizes& sizes, const Tensor& x, Tensor& y) const {
    KernelContext& ctx = call.ctx();
    const Shape channels{sizes.channels};
    BatchStatistics to;
    to.reported_mean = Floats(ctx.AllocateOutput(1, channels));
    to.reported_variance = Floats(ctx.AllocateOutput(2, channels));
    to.mean = Floats(ctx.AllocateOutput(3, channels));
    to.variance = Floats(ctx.AllocateOutput(4, channels));
    if (sizes.channels == 0) return;
    if (x.num_elements() == 0) {
      for (float* none : {to.reported_mean, to.reported_variance, to.mean, to.variance}) FillNan(call, none, sizes);
      return;
    }
    if (factor_ != 1.0f) {
      to.old_mean = Floats(ctx.input(3));
      to.old_variance = Floats(ctx.input(4));
    }
    to.factor = factor_;
    // Reports the unbiased estimate of the variance, which is divided by count - 1.
    const auto count = static_cast<float>(sizes.points);
    to.correction = count > 1 ? count / (count - 1) : 1.0f;
    const Scratch scratch(call, BatchNormBytes(sizes));
    LaunchBatchStatistics(call.driver(), call.stream(), type(), sizes, x.raw_data(), to, scratch.data());
    Normalize(call, sizes, x, to.mean, to.variance, y);
  }

  // Without points there are no statistics.
  static void FillNan(const CudaCall& call, float* statistic, const BatchSizes& sizes) {
    constexpr unsigned char kBytesOfNan = 0xff;
    const auto bytes = static_cast<size_t>(sizes.channels) * sizeof(float);
    call.driver().FillAsync(statistic, kBytesOfNan, bytes, call.stream());
  }

  void Normalize(const CudaCall& call, const BatchSizes& sizes, const Tensor& x, const float* mean,
                 const float* variance, Tensor& y) const {
    const KernelContext& ctx = call.ctx();
    LaunchNormalize(call.driver(), call.stream(), type(), sizes, x.raw_data(),
                    {mean, variance, Floats(ctx.input(1)), Floats(ctx.input(2)), epsilon()}, y.raw_data());
  }

  const float factor_;
};

class BatchNormGradKernel final : public BatchNormBase {
 public:
  explicit BatchNormGradKernel(const KernelConstruction& c) : BatchNormBase(c) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& dy = ctx.input(0);
    const Tensor& x = ctx.input(1);
    const BatchSizes sizes = SizesOf(x.shape());
    if (dy.shape() != x.shape()) {
      throw InvalidArgumentError(
          StrCat("[kernels/batch_norm] expected y_backprop of the shape of x, ", x.shape(), "; got ", dy.shape()));
    }
    for (int i = 2; i < 5; ++i) CheckChannels(ctx, i, sizes.channels);
    Tensor& dx = ctx.AllocateOutput(0, x.shape());
    Tensor& d_scale = ctx.AllocateOutput(1, Shape{sizes.channels});
    Tensor& d_offset = ctx.AllocateOutput(2, Shape{sizes.channels});
    for (const int output : {3, 4}) ctx.AllocateOutput(output, Shape{0});
    if (x.num_elements() == 0) {
      FillZero(call, d_scale);
      return FillZero(call, d_offset);
    }
    const Normalization normalization = {Floats(ctx.input(3)), Floats(ctx.input(4)), Floats(ctx.input(2)), nullptr,
                                         epsilon()};
    const Scratch scratch(call, BatchNormBytes(sizes));
    LaunchNormalizationSums(call.driver(), call.stream(), type(), sizes, x.raw_data(), dy.raw_data(), normalization,
                            Floats(d_scale), Floats(d_offset), scratch.data());
    LaunchNormalizationGradient(call.driver(), call.stream(), type(), sizes, x.raw_data(), dy.raw_data(), normalization,
                                training() ? Floats(d_scale) : nullptr, training() ? Floats(d_offset) : nullptr,
                                dx.raw_data());
  }
};

}  // namespace

void RegisterBatchNormKernels(KernelRegistry& registry) {
  registry.Register<BatchNormKernel>("FusedBatchNormV3", kGpu);
  registry.Register<BatchNormGradKernel>("FusedBatchNormGradV3", kGpu);
}

}  // namespace cohort::cuda
