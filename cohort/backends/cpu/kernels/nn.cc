// BiasAdd and its gradient, L2Loss and InTopK. Long sums are made of blocks, so that they lose little precision and do
// not depend on the number of threads.
#include <cmath>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

using cpu::Wide;

// A tensor seen as [outer, channels, inner]; inner is 1 for NHWC.
struct ChannelView {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;

  ChannelView(const Shape& shape, bool channels_first) {
    if (shape.rank() < 2) {
      throw InvalidArgumentError(StrCat("[kernels/nn] expected a tensor of rank 2 or more; got ", shape));
    }
    const int axis = channels_first ? 1 : shape.rank() - 1;
    outer = shape.Sub(0, axis).num_elements();
    channels = shape.dim(axis);
    inner = shape.Sub(axis + 1, shape.rank()).num_elements();
  }
};

template <typename T>
struct BiasAddBody {
  static COHORT_INLINE void Run(const void* value, const void* bias, void* output, const ChannelView* view,
                                int64_t begin, int64_t end) {
    const T* x = static_cast<const T*>(value);
    const T* b = static_cast<const T*>(bias);
    T* y = static_cast<T*>(output);
    const int64_t channels = view->channels;
    const int64_t inner = view->inner;
    for (int64_t o = begin; o < end; ++o) {
      const int64_t row = o * channels * inner;
      if (inner == 1) {
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) {
          y[row + c] = static_cast<T>(static_cast<Wide<T>>(x[row + c]) + static_cast<Wide<T>>(b[c]));
        }
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        const auto shift = static_cast<Wide<T>>(b[c]);
        const int64_t at = row + c * inner;
#pragma omp simd
        for (int64_t i = 0; i < inner; ++i) y[at + i] = static_cast<T>(static_cast<Wide<T>>(x[at + i]) + shift);
      }
    }
  }
};

class BiasAddKernel final : public OpKernel {
 public:
  explicit BiasAddKernel(const KernelConstruction& c)
      : channels_first_(c.attr<std::string>("data_format") == "NCHW"),
        add_(cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(),
                              []<typename T>(T) -> AddFn { return cpu::Widest<BiasAddBody<T>>(); })) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    const Tensor& bias = ctx.input(1);
    const ChannelView view(value.shape(), channels_first_);
    if (bias.shape().rank() != 1 || bias.shape().dim(0) != view.channels) {
      throw InvalidArgumentError(StrCat("[kernels/nn] expected a bias of shape [", view.channels,
                                        "] for a value of shape ", value.shape(), "; got ", bias.shape()));
    }
    Tensor& out = ctx.ForwardInputOrAllocate(0, 0, value.shape());
    const void* from = value.raw_data();
    void* to = out.raw_data();
    cpu::ForBlocks(
        view.outer, ctx.num_threads(),
        [&](int64_t begin, int64_t end) { add_(from, bias.raw_data(), to, &view, begin, end); },
        view.channels * view.inner);
  }

 private:
  using AddFn = void (*)(const void*, const void*, void*, const ChannelView*, int64_t, int64_t);
  const bool channels_first_;
  const AddFn add_;
};

// sums[c] += the elements of channel c in outer rows [begin, end).
template <typename T>
struct SumChannelsBody {
  static COHORT_INLINE void Run(const T* x, Wide<T>* sums, const ChannelView* view, int64_t begin, int64_t end) {
    const int64_t channels = view->channels;
    const int64_t inner = view->inner;
    for (int64_t o = begin; o < end; ++o) {
      const T* row = x + o * channels * inner;
      if (inner == 1) {
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) sums[c] += static_cast<Wide<T>>(row[c]);
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        Wide<T> sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < inner; ++i) sum += static_cast<Wide<T>>(row[c * inner + i]);
        sums[c] += sum;
      }
    }
  }
};

// Sums blocks of rows, and then adds the blocks in pairs. This causes little rounding, and gives the same result for
// any number of threads.
template <typename T>
void SumToBias(KernelContext& ctx, const ChannelView& view) {
  using W = Wide<T>;
  constexpr int64_t kBlock = 128;
  const int64_t channels = view.channels;
  const int64_t blocks = std::max<int64_t>(1, (view.outer + kBlock - 1) / kBlock);
  const T* x = ctx.input(0).data<T>();
  T* out = ctx.AllocateOutput(0, Shape{channels}).data<T>();
  const auto run = cpu::Widest<SumChannelsBody<T>>();
  std::vector<W> partial(static_cast<size_t>(blocks * channels), W(0));
  cpu::ForBlocks(
      blocks, ctx.num_threads(),
      [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          run(x, partial.data() + b * channels, &view, b * kBlock, std::min(view.outer, (b + 1) * kBlock));
        }
      },
      kBlock * channels * view.inner);
  for (int64_t stride = 1; stride < blocks; stride *= 2) {
    for (int64_t b = 0; b + stride < blocks; b += 2 * stride) {
      W* to = partial.data() + b * channels;
      const W* from = to + stride * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) to[c] += from[c];
    }
  }
  for (int64_t c = 0; c < channels; ++c) out[c] = static_cast<T>(partial[static_cast<size_t>(c)]);
}

class BiasAddGradKernel final : public OpKernel {
 public:
  explicit BiasAddGradKernel(const KernelConstruction& c)
      : channels_first_(c.attr<std::string>("data_format") == "NCHW"),
        sum_(cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(),
                              [](auto tag) -> SumFn { return &SumToBias<decltype(tag)>; })) {}
  void Compute(KernelContext& ctx) override { sum_(ctx, ChannelView(ctx.input(0).shape(), channels_first_)); }

 private:
  using SumFn = void (*)(KernelContext&, const ChannelView&);
  const bool channels_first_;
  const SumFn sum_;
};

// Sums blocks, and adds the blocks in float64, so that long sums keep their precision.
template <typename T>
void ComputeL2Loss(KernelContext& ctx) {
  const auto values = ctx.input(0).values<T>();
  const T* x = values.data();
  const auto n = static_cast<int64_t>(values.size());
  constexpr int64_t kBlock = 256;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    Wide<T> sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += static_cast<Wide<T>>(x[i]) * static_cast<Wide<T>>(x[i]);
    total += static_cast<double>(sum);
  }
  *ctx.AllocateOutput(0, Shape()).data<T>() = static_cast<T>(static_cast<Wide<T>>(total / 2));
}

class L2LossKernel final : public OpKernel {
 public:
  explicit L2LossKernel(const KernelConstruction& c)
      : compute_(cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(),
                                  [](auto tag) -> ComputeFn { return &ComputeL2Loss<decltype(tag)>; })) {}
  void Compute(KernelContext& ctx) override { compute_(ctx); }

 private:
  using ComputeFn = void (*)(KernelContext&);
  const ComputeFn compute_;
};

// Returns true if fewer than k of the row's classes are more probable than `target`. Returns false for invalid values.
bool IsInTopK(const float* row, int64_t classes, int64_t target, int64_t k) {
  if (target < 0 || target >= classes || !std::isfinite(row[target])) return false;
  int64_t above = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (!std::isfinite(row[c])) return false;
    above += row[c] > row[target];
  }
  return above < k;
}

template <typename Label>
void InTopK(KernelContext& ctx) {
  const Tensor& predictions = ctx.input(0);
  const Tensor& targets = ctx.input(1);
  if (predictions.shape().rank() != 2 || targets.shape() != predictions.shape().Sub(0, 1)) {
    throw InvalidArgumentError(StrCat("[kernels/nn] expected predictions [batch, classes] and targets [batch]; got ",
                                      predictions.shape(), " and ", targets.shape()));
  }
  const int64_t classes = predictions.shape().dim(1);
  const auto k = static_cast<int64_t>(ctx.input(2).scalar<Label>());
  bool* out = ctx.AllocateOutput(0, targets.shape()).data<bool>();
  for (int64_t b = 0; b < targets.num_elements(); ++b) {
    out[b] = IsInTopK(predictions.data<float>() + b * classes, classes, targets.data<Label>()[b], k);
  }
}

void ComputeInTopK(KernelContext& ctx) {
  ctx.input(1).dtype() == DType::kInt64 ? InTopK<int64_t>(ctx) : InTopK<int32_t>(ctx);
}

}  // namespace

void RegisterNnKernels(KernelRegistry& registry) {
  registry.Register<BiasAddKernel>("BiasAdd", "CPU");
  registry.Register<BiasAddGradKernel>("BiasAddGrad", "CPU");
  registry.Register<L2LossKernel>("L2Loss", "CPU");
  registry.RegisterFn("InTopKV2", "CPU", ComputeInTopK);
}

}  // namespace cohort
