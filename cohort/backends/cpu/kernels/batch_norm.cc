#include <algorithm>
#include <limits>

#include "cohort/backends/cpu/kernels/batch_norm_call.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using cpu::BatchNormSpec;

void CheckChannels(const KernelContext& ctx, int input, int64_t channels) {
  const Shape& shape = ctx.input(input).shape();
  if (shape == Shape{channels}) return;
  throw InvalidArgumentError(StrCat("[kernels/batch_norm] expected ", ctx.node().input_arg(input).name, " of shape [",
                                    channels, "]; got ", shape));
}

class BatchNormBase : public OpKernel {
 protected:
  explicit BatchNormBase(const KernelConstruction& c)
      : op_(c.node.op_name()),
        dtype_(c.attr<DType>("T")),
        epsilon_(c.attr<float>("epsilon")),
        training_(c.attr<bool>("is_training")),
        order_(cpu::OrderOf(c.node, "_blocked_in")) {}

  template <typename Make>
  cpu::CallCache::CallPtr Call(KernelContext& ctx, const Shape& shape, const Make& make) {
    cpu::CallCache::Key key(shape.dims().begin(), shape.dims().end());
    key.push_back(ctx.num_threads());
    cpu::UseThreads(ctx.num_threads());
    return calls_.Get(std::move(key), op_, [&] {
      return make(BatchNormSpec{dtype_, shape, order_, epsilon_, !training_});
    });
  }

  static void CheckImages(const Shape& x) {
    if (x.rank() == 4) return;
    throw InvalidArgumentError(
        StrCat("[kernels/batch_norm] expected x of shape [batch, rows, columns, channels]; got ", x));
  }

  bool training() const { return training_; }

 private:
  const std::string op_;
  const DType dtype_;
  const float epsilon_;
  const bool training_;
  const cpu::Order order_;
  cpu::CallCache calls_;
};

class BatchNormKernel final : public BatchNormBase {
 public:
  explicit BatchNormKernel(const KernelConstruction& c)
      : BatchNormBase(c), factor_(c.attr<float>("exponential_avg_factor")) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    CheckImages(x.shape());
    const int64_t channels = x.shape().dim(3);
    const bool reads_given = !training() || factor_ != 1.0f;
    for (int i = 1; i < (reads_given ? 5 : 3); ++i) CheckChannels(ctx, i, channels);
    Tensor& y = ctx.AllocateOutput(0, x.shape());
    ctx.AllocateOutput(5, Shape{}).data<float>()[0] = 0.0f;
    if (!training()) {
      for (const int output : {1, 3}) ctx.SetOutput(output, ctx.input(3));
      for (const int output : {2, 4}) ctx.SetOutput(output, ctx.input(4));
      if (x.num_elements() > 0) Normalize(ctx, x, ctx.input(3).raw_data(), ctx.input(4).raw_data(), y);
      return;
    }
    Tensor& mean = ctx.AllocateOutput(3, Shape{channels});
    Tensor& variance = ctx.AllocateOutput(4, Shape{channels});
    if (x.num_elements() > 0) {
      Normalize(ctx, x, mean.raw_data(), variance.raw_data(), y);
    } else {
      for (Tensor* none : {&mean, &variance}) {
        std::fill_n(none->data<float>(), channels, std::numeric_limits<float>::quiet_NaN());
      }
    }
    // Reports the unbiased estimate of the variance, which is divided by count - 1.
    const auto count = static_cast<float>(x.shape().Sub(0, 3).num_elements());
    Report(ctx, 1, mean, 3, 1.0f);
    Report(ctx, 2, variance, 4, count > 1 ? count / (count - 1) : 1.0f);
  }

 private:
  void Normalize(KernelContext& ctx, const Tensor& x, const void* mean, const void* variance, const Tensor& y) {
    Call(ctx, x.shape(), cpu::BatchNormCall)
        ->Run(ctx, {x.raw_data(), ctx.input(1).raw_data(), ctx.input(2).raw_data(), mean, variance, y.raw_data()});
  }

  // output = (1 - factor) * given + factor * correction * batch.
  void Report(KernelContext& ctx, int output, const Tensor& batch, int given, float correction) const {
    float* out = ctx.AllocateOutput(output, batch.shape()).data<float>();
    const float* from = batch.data<float>();
    const float* old = factor_ != 1.0f ? ctx.input(given).data<float>() : nullptr;
    for (int64_t c = 0; c < batch.num_elements(); ++c) {
      const float value = from[c] * correction;
      out[c] = old == nullptr ? value : (1.0f - factor_) * old[c] + factor_ * value;
    }
  }

  const float factor_;
};

class BatchNormGradKernel final : public BatchNormBase {
 public:
  explicit BatchNormGradKernel(const KernelConstruction& c) : BatchNormBase(c) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& dy = ctx.input(0);
    const Tensor& x = ctx.input(1);
    CheckImages(x.shape());
    if (dy.shape() != x.shape()) {
      throw InvalidArgumentError(
          StrCat("[kernels/batch_norm] expected y_backprop of the shape of x, ", x.shape(), "; got ", dy.shape()));
    }
    const int64_t channels = x.shape().dim(3);
    for (int i = 2; i < 5; ++i) CheckChannels(ctx, i, channels);
    Tensor& dx = ctx.AllocateOutput(0, x.shape());
    Tensor& d_scale = ctx.AllocateOutput(1, Shape{channels});
    Tensor& d_offset = ctx.AllocateOutput(2, Shape{channels});
    for (const int output : {3, 4}) ctx.AllocateOutput(output, Shape{0});
    if (x.num_elements() == 0) {
      for (Tensor* sum : {&d_scale, &d_offset}) std::fill_n(sum->data<float>(), channels, 0.0f);
      return;
    }
    Call(ctx, x.shape(), cpu::BatchNormGradientCall)
        ->Run(ctx,
              {dy.raw_data(), x.raw_data(), ctx.input(2).raw_data(), ctx.input(2).raw_data(), ctx.input(3).raw_data(),
               ctx.input(4).raw_data(), dx.raw_data(), d_scale.raw_data(), d_offset.raw_data()});
  }
};

}  // namespace

void RegisterBatchNormKernels(KernelRegistry& registry) {
  registry.Register<BatchNormKernel>("FusedBatchNormV3", "CPU");
  registry.Register<BatchNormGradKernel>("FusedBatchNormGradV3", "CPU");
}

}  // namespace cohort
