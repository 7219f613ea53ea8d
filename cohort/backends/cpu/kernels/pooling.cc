// Max and average pools and their gradients, by oneDNN. The gradient of a max pool needs the positions of the largest
// elements: MaxPoolGradKernel pools again to find them, and the fused pair keeps them from the forward pass.
#include <cstring>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/pooling_call.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

using cpu::PoolSpec;

void CheckShape(const char* what, const Shape& got, const Shape& expected) {
  if (got == expected) return;
  throw InvalidArgumentError(StrCat("[kernels/pooling] expected ", what, " of shape ", expected, "; got ", got));
}

class PoolBase : public OpKernel {
 protected:
  PoolBase(const KernelConstruction& c, bool is_max)
      : op_(c.node.op_name()),
        dtype_(c.attr<DType>("T")),
        is_max_(is_max),
        window_(ops::PoolWindow(c.node)),
        order_(cpu::OrderOf(c.node, "_blocked_in")) {}

  PoolSpec SpecFor(const Shape& input, bool places) const {
    PoolSpec spec;
    spec.dtype = dtype_;
    spec.window = window_;
    spec.order = order_;
    spec.input = input;
    spec.output = ops::PooledShape(window_, input);
    spec.is_max = is_max_;
    spec.places = places;
    return spec;
  }

  template <typename Make>
  cpu::CallCache::CallPtr Call(KernelContext& ctx, cpu::CallCache& calls, const PoolSpec& spec, const Make& make) {
    cpu::CallCache::Key key(spec.input.dims().begin(), spec.input.dims().end());
    key.push_back(ctx.num_threads());
    cpu::UseThreads(ctx.num_threads());
    return calls.Get(std::move(key), op_, [&] { return make(spec); });
  }

  const ops::WindowAttrs& window() const { return window_; }
  DType dtype() const { return dtype_; }

 private:
  const std::string op_;
  const DType dtype_;
  const bool is_max_;
  const ops::WindowAttrs window_;
  const cpu::Order order_;
};

template <bool is_max>
class PoolKernel final : public PoolBase {
 public:
  explicit PoolKernel(const KernelConstruction& c) : PoolBase(c, is_max) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const PoolSpec spec = SpecFor(input.shape(), false);
    Tensor& output = ctx.AllocateOutput(0, spec.output);
    if (output.num_elements() == 0) return;
    Call(ctx, calls_, spec, cpu::PoolCall)->Run(ctx, {input.raw_data(), output.raw_data()});
  }

 private:
  cpu::CallCache calls_;
};

class AvgPoolGradKernel final : public PoolBase {
 public:
  explicit AvgPoolGradKernel(const KernelConstruction& c) : PoolBase(c, false) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& gradient = ctx.input(1);
    const PoolSpec spec = SpecFor(Shape(ops::IntegerValues(ctx.input(0))), false);
    CheckShape("a gradient", gradient.shape(), spec.output);
    Tensor& output = ctx.AllocateOutput(0, spec.input);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) {
      std::memset(output.raw_data(), 0, output.bytes());
      return;
    }
    Call(ctx, calls_, spec, cpu::PoolGradientCall)->Run(ctx, {gradient.raw_data(), output.raw_data()});
  }

 private:
  cpu::CallCache calls_;
};

// Pools again, to find the positions of the largest elements.
class MaxPoolGradKernel final : public PoolBase {
 public:
  explicit MaxPoolGradKernel(const KernelConstruction& c) : PoolBase(c, true) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Tensor& gradient = ctx.input(2);
    const PoolSpec spec = SpecFor(input.shape(), true);
    CheckShape("the pool's output", ctx.input(1).shape(), spec.output);
    CheckShape("a gradient", gradient.shape(), spec.output);
    Tensor& output = ctx.AllocateOutput(0, spec.input);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) {
      std::memset(output.raw_data(), 0, output.bytes());
      return;
    }
    const auto forward = Call(ctx, forward_calls_, spec, cpu::PoolCall);
    const auto backward = Call(ctx, calls_, spec, cpu::PoolGradientCall);
    Tensor pooled = ctx.AllocateTemp(dtype(), spec.output);
    Tensor places = ctx.AllocateTemp(DType::kUint8, Shape{static_cast<int64_t>(forward->bytes(DNNL_ARG_WORKSPACE))});
    forward->Run(ctx, {input.raw_data(), pooled.raw_data(), places.raw_data()});
    backward->Run(ctx, {gradient.raw_data(), output.raw_data(), places.raw_data()});
  }

 private:
  cpu::CallCache forward_calls_;
  cpu::CallCache calls_;
};

// A max pool that keeps the positions of the largest elements, and its gradient.
class MaxPoolWithPlacesKernel final : public PoolBase {
 public:
  explicit MaxPoolWithPlacesKernel(const KernelConstruction& c) : PoolBase(c, true) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const PoolSpec spec = SpecFor(input.shape(), true);
    Tensor& output = ctx.AllocateOutput(0, spec.output);
    int32_t* shape = ctx.AllocateOutput(2, Shape{input.shape().rank()}).data<int32_t>();
    for (const int64_t dim : input.shape().dims()) *shape++ = static_cast<int32_t>(dim);
    if (output.num_elements() == 0) {
      ctx.AllocateOutput(1, Shape{0});
      return;
    }
    const auto call = Call(ctx, calls_, spec, cpu::PoolCall);
    Tensor& places = ctx.AllocateOutput(1, Shape{static_cast<int64_t>(call->bytes(DNNL_ARG_WORKSPACE))});
    call->Run(ctx, {input.raw_data(), output.raw_data(), places.raw_data()});
  }

 private:
  cpu::CallCache calls_;
};

class MaxPoolGradAtPlacesKernel final : public PoolBase {
 public:
  explicit MaxPoolGradAtPlacesKernel(const KernelConstruction& c) : PoolBase(c, true) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& gradient = ctx.input(2);
    const PoolSpec spec = SpecFor(Shape(ops::IntegerValues(ctx.input(0))), true);
    CheckShape("a gradient", gradient.shape(), spec.output);
    Tensor& output = ctx.AllocateOutput(0, spec.input);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) {
      std::memset(output.raw_data(), 0, output.bytes());
      return;
    }
    Call(ctx, calls_, spec, cpu::PoolGradientCall)
        ->Run(ctx, {gradient.raw_data(), output.raw_data(), ctx.input(1).raw_data()});
  }

 private:
  cpu::CallCache calls_;
};

// The element of `x` that a pool takes at output row r and column c of one image, as an index.
template <typename T>
int64_t LargestInWindow(const T* x, const PoolSpec& s, const std::array<ops::WindowExtent, 2>& extents, int64_t r,
                        int64_t c, int64_t channel) {
  using W = cpu::Wide<T>;
  int64_t best = -1;
  for (int64_t i = 0; i < s.window.size[0]; ++i) {
    const int64_t row = r * s.window.strides[0] - extents[0].before + i;
    if (row < 0 || row >= s.input.dim(1)) continue;
    for (int64_t j = 0; j < s.window.size[1]; ++j) {
      const int64_t column = c * s.window.strides[1] - extents[1].before + j;
      if (column < 0 || column >= s.input.dim(2)) continue;
      const int64_t at = (row * s.input.dim(2) + column) * s.input.dim(3) + channel;
      if (best < 0 || static_cast<W>(x[at]) > static_cast<W>(x[best])) best = at;
    }
  }
  return best;
}

// A second derivative, which training never asks for.
class MaxPoolGradGradKernel final : public PoolBase {
 public:
  explicit MaxPoolGradGradKernel(const KernelConstruction& c) : PoolBase(c, true) {}

  void Compute(KernelContext& ctx) override {
    if (dtype() == DType::kBfloat16) return Pick<bfloat16>(ctx);
    Pick<float>(ctx);
  }

 private:
  template <typename T>
  void Pick(KernelContext& ctx) {
    const Tensor& input = ctx.input(0);
    const PoolSpec s = SpecFor(input.shape(), false);
    CheckShape("the pool's output", ctx.input(1).shape(), s.output);
    CheckShape("a gradient", ctx.input(2).shape(), s.input);
    T* out = ctx.AllocateOutput(0, s.output).data<T>();
    const std::array<ops::WindowExtent, 2> extents = {ops::PlaceWindow(s.window, 0, s.input.dim(1), s.window.size[0]),
                                                      ops::PlaceWindow(s.window, 1, s.input.dim(2), s.window.size[1])};
    const int64_t image = s.input.Sub(1, 4).num_elements();
    for (int64_t b = 0; b < s.output.dim(0); ++b) {
      const T* x = input.data<T>() + b * image;
      const T* g = ctx.input(2).data<T>() + b * image;
      for (int64_t r = 0; r < s.output.dim(1); ++r) {
        for (int64_t c = 0; c < s.output.dim(2); ++c) {
          for (int64_t k = 0; k < s.output.dim(3); ++k) *out++ = g[LargestInWindow(x, s, extents, r, c, k)];
        }
      }
    }
  }
};

}  // namespace

void RegisterPoolingKernels(KernelRegistry& registry) {
  registry.Register<PoolKernel<true>>("MaxPool", "CPU");
  registry.Register<MaxPoolGradKernel>("MaxPoolGrad", "CPU");
  registry.Register<MaxPoolGradGradKernel>("MaxPoolGradGrad", "CPU");
  registry.Register<MaxPoolWithPlacesKernel>("_MaxPoolWithPlaces", "CPU");
  registry.Register<MaxPoolGradAtPlacesKernel>("_MaxPoolGradAtPlaces", "CPU");
  registry.Register<PoolKernel<false>>("AvgPool", "CPU");
  registry.Register<AvgPoolGradKernel>("AvgPoolGrad", "CPU");
}

}  // namespace cohort
