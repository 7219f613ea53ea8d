// Max and average pools and their gradients. The gradient of a max pool needs the places of the largest elements:
// MaxPoolGradKernel pools again to find them, and the fused pair keeps them from the forward pass.
#include <string>

#include "cohort/backends/cuda/kernels/activation.h"
#include "cohort/backends/cuda/kernels/pooling.cu.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/window.h"

namespace cohort::cuda {
namespace {

void CheckShape(const char* what, const Shape& got, const Shape& expected) {
  if (got == expected) return;
  throw InvalidArgumentError(StrCat("[kernels/pooling] expected ", what, " of shape ", expected, "; got ", got));
}

class PoolBase : public OpKernel {
 protected:
  explicit PoolBase(const KernelConstruction& c)
      : type_(ElementTypeOf(c.attr<DType>("T"))), window_(ops::PoolWindow(c.node)), of_input_(InputActivation(c)) {}

  Shape OutputOf(const Shape& input) const { return ops::PooledShape(window_, input); }

  PoolSizes SizesOf(const Shape& input, const Shape& output) const {
    PoolSizes s;
    s.batch = input.dim(0);
    s.channels = input.dim(3);
    for (int axis = 0; axis < 2; ++axis) {
      const auto i = static_cast<size_t>(axis);
      s.in[axis] = input.dim(axis + 1);
      s.out[axis] = output.dim(axis + 1);
      s.window[axis] = window_.size[i];
      s.strides[axis] = window_.strides[i];
      s.before[axis] = ops::PlaceWindow(window_, axis, input.dim(axis + 1), window_.size[i]).before;
    }
    return s;
  }

  ElementType type() const { return type_; }
  // The activation that is applied to the input first.
  Activation of_input() const { return of_input_; }

 private:
  const ElementType type_;
  const ops::WindowAttrs window_;
  const Activation of_input_;
};

template <bool is_max>
class PoolKernel final : public PoolBase {
 public:
  explicit PoolKernel(const KernelConstruction& c) : PoolBase(c) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& input = ctx.input(0);
    Tensor& output = ctx.AllocateOutput(0, OutputOf(input.shape()));
    if (output.num_elements() == 0) return;
    const PoolSizes sizes = SizesOf(input.shape(), output.shape());
    if (is_max) {
      LaunchMaxPool(call.driver(), call.stream(), type(), sizes, input.raw_data(), output.raw_data(), nullptr,
                    of_input());
    } else {
      LaunchAvgPool(call.driver(), call.stream(), type(), sizes, input.raw_data(), output.raw_data(), of_input());
    }
  }
};

class AvgPoolGradKernel final : public PoolBase {
 public:
  explicit AvgPoolGradKernel(const KernelConstruction& c) : PoolBase(c) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& gradient = ctx.input(1);
    const Shape input(ops::IntegerValues(ctx.input(0)));
    CheckShape("a gradient", gradient.shape(), OutputOf(input));
    Tensor& output = ctx.AllocateOutput(0, input);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) return FillZero(call, output);
    LaunchAvgPoolGradient(call.driver(), call.stream(), type(), SizesOf(input, gradient.shape()), gradient.raw_data(),
                          output.raw_data());
  }
};

// The gradient of an average pool, and behind it the gradient of the activation of its input.
class FusedAvgPoolGradKernel final : public PoolBase {
 public:
  explicit FusedAvgPoolGradKernel(const KernelConstruction& c) : PoolBase(c), applied_(GradientToApply(c)) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& gradient = ctx.input(1);
    const Tensor& activated = ctx.input(2);
    const Shape input(ops::IntegerValues(ctx.input(0)));
    CheckShape("a gradient", gradient.shape(), OutputOf(input));
    CheckActivated(activated.shape(), input);
    Tensor& output = ctx.AllocateOutput(0, input);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) return FillZero(call, output);
    AppliedGradient applied = applied_;
    applied.activated = activated.raw_data();
    LaunchAvgPoolGradient(call.driver(), call.stream(), type(), SizesOf(input, gradient.shape()), gradient.raw_data(),
                          output.raw_data(), applied);
  }

 private:
  const AppliedGradient applied_;
};

// Pools again, to find the places of the largest elements.
class MaxPoolGradKernel final : public PoolBase {
 public:
  explicit MaxPoolGradKernel(const KernelConstruction& c) : PoolBase(c) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& input = ctx.input(0);
    const Tensor& gradient = ctx.input(2);
    const Shape pooled = OutputOf(input.shape());
    CheckShape("the pool's output", ctx.input(1).shape(), pooled);
    CheckShape("a gradient", gradient.shape(), pooled);
    Tensor& output = ctx.AllocateOutput(0, input.shape());
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) return FillZero(call, output);
    const PoolSizes sizes = SizesOf(input.shape(), pooled);
    const auto count = static_cast<size_t>(sizes.out_count());
    const Scratch again(call, count * DTypeSize(input.dtype()));
    const Scratch places(call, count * sizes.place_bytes());
    LaunchMaxPool(call.driver(), call.stream(), type(), sizes, input.raw_data(), again.data(), places.data());
    LaunchMaxPoolGradient(call.driver(), call.stream(), type(), sizes, places.data(), gradient.raw_data(),
                          output.raw_data());
  }
};

class MaxPoolGradGradKernel final : public PoolBase {
 public:
  explicit MaxPoolGradGradKernel(const KernelConstruction& c) : PoolBase(c) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& input = ctx.input(0);
    const Shape pooled = OutputOf(input.shape());
    CheckShape("the pool's output", ctx.input(1).shape(), pooled);
    CheckShape("a gradient", ctx.input(2).shape(), input.shape());
    Tensor& output = ctx.AllocateOutput(0, pooled);
    if (output.num_elements() == 0) return;
    LaunchPickLargest(call.driver(), call.stream(), type(), SizesOf(input.shape(), pooled), input.raw_data(),
                      ctx.input(2).raw_data(), output.raw_data());
  }
};

// A max pool that keeps the places of the largest elements, and its gradient.
class MaxPoolWithPlacesKernel final : public PoolBase {
 public:
  explicit MaxPoolWithPlacesKernel(const KernelConstruction& c) : PoolBase(c) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& input = ctx.input(0);
    const Shape& shape = input.shape();
    Tensor& output = ctx.AllocateOutput(0, OutputOf(shape));
    auto* dims = static_cast<int32_t*>(ctx.AllocateOutput(2, Shape{shape.rank()}).raw_data());
    for (const int64_t dim : shape.dims()) *dims++ = static_cast<int32_t>(dim);
    if (output.num_elements() == 0) {
      ctx.AllocateOutput(1, Shape{0});
      return;
    }
    const PoolSizes sizes = SizesOf(shape, output.shape());
    const int64_t bytes = sizes.out_count() * static_cast<int64_t>(sizes.place_bytes());
    Tensor& places = ctx.AllocateOutput(1, Shape{bytes});
    LaunchMaxPool(call.driver(), call.stream(), type(), sizes, input.raw_data(), output.raw_data(), places.raw_data(),
                  of_input());
  }
};

// If `applies`, the gradient of an activation comes first.
template <bool applies>
class MaxPoolGradAtPlacesKernel final : public PoolBase {
 public:
  explicit MaxPoolGradAtPlacesKernel(const KernelConstruction& c) : PoolBase(c) {
    if constexpr (applies) applied_ = GradientToApply(c);
  }

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& gradient = ctx.input(2);
    const Shape input(ops::IntegerValues(ctx.input(0)));
    if constexpr (applies) CheckActivated(ctx.input(3).shape(), gradient.shape());
    CheckShape("a gradient", gradient.shape(), OutputOf(input));
    Tensor& output = ctx.AllocateOutput(0, input);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) return FillZero(call, output);
    AppliedGradient applied = applied_;
    if constexpr (applies) applied.activated = ctx.input(3).raw_data();
    LaunchMaxPoolGradient(call.driver(), call.stream(), type(), SizesOf(input, gradient.shape()),
                          ctx.input(1).raw_data(), gradient.raw_data(), output.raw_data(), applied);
  }

 private:
  AppliedGradient applied_;
};

}  // namespace

void RegisterPoolingKernels(KernelRegistry& registry) {
  registry.Register<PoolKernel<true>>("MaxPool", kGpu);
  registry.Register<MaxPoolGradKernel>("MaxPoolGrad", kGpu);
  registry.Register<MaxPoolGradGradKernel>("MaxPoolGradGrad", kGpu);
  registry.Register<MaxPoolWithPlacesKernel>("_MaxPoolWithPlaces", kGpu);
  registry.Register<MaxPoolGradAtPlacesKernel<false>>("_MaxPoolGradAtPlaces", kGpu);
  registry.Register<MaxPoolGradAtPlacesKernel<true>>("_FusedMaxPoolGradAtPlaces", kGpu);
  registry.Register<PoolKernel<false>>("AvgPool", kGpu);
  registry.Register<AvgPoolGradKernel>("AvgPoolGrad", kGpu);
  registry.Register<FusedAvgPoolGradKernel>("_FusedAvgPoolGrad", kGpu);
}

}  // namespace cohort::cuda
