// Convolutions, their gradients, and their fused forms, by oneDNN. A kernel finds or makes the oneDNN call for its
// shapes (CallCache) and runs it. ConvolutionBase has the parts that the kernels share.
#include <cstring>

#include "cohort/backends/cpu/kernels/activation.h"
#include "cohort/backends/cpu/kernels/convolution_call.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

using cpu::ConvolutionSpec;

void SetZero(Tensor& tensor) { std::memset(tensor.raw_data(), 0, tensor.bytes()); }

// The common part of the kernels of convolutions: attributes, shapes, calls.
class ConvolutionBase : public OpKernel {
 protected:
  ConvolutionBase(const KernelConstruction& c, bool depthwise)
      : op_(c.node.op_name()),
        dtype_(c.attr<DType>("T")),
        depthwise_(depthwise),
        window_(ops::ConvolutionWindow(c)),
        input_order_(cpu::OrderOf(c.node, "_blocked_in")),
        output_order_(cpu::OrderOf(c.node, "_blocked_out")) {}

  // Throws InvalidArgumentError for shapes that do not fit. `output` is given if it is an operand.
  ConvolutionSpec SpecFor(const Shape& input, const Shape& filter, const Shape* output = nullptr) const {
    ConvolutionSpec spec;
    spec.dtype = dtype_;
    spec.window = window_;
    spec.input_order = input_order_;
    spec.output_order = output_order_;
    spec.input = input;
    spec.output = ops::ConvolvedShape(window_, input, filter, depthwise_);
    spec.filter = depthwise_ ? Shape{filter.dim(0), filter.dim(1), 1, filter.dim(2) * filter.dim(3)} : filter;
    if (output != nullptr && *output != spec.output) {
      throw InvalidArgumentError(StrCat("[kernels/convolution] expected a gradient of shape ", spec.output,
                                        " for input ", input, " and filter ", filter, "; got ", *output));
    }
    return spec;
  }

  template <typename Make>
  cpu::CallCache::CallPtr Call(KernelContext& ctx, const ConvolutionSpec& spec, const Make& make) {
    cpu::CallCache::Key key(spec.input.dims().begin(), spec.input.dims().end());
    key.insert(key.end(), spec.filter.dims().begin(), spec.filter.dims().end());
    key.push_back(ctx.num_threads());
    cpu::UseThreads(ctx.num_threads());
    return calls_.Get(std::move(key), op_, [&] { return make(spec); });
  }

 private:
  const std::string op_;
  const DType dtype_;
  const bool depthwise_;
  const ops::WindowAttrs window_;
  const cpu::Order input_order_;
  const cpu::Order output_order_;
  cpu::CallCache calls_;
};

template <bool depthwise>
class ConvolutionKernel final : public ConvolutionBase {
 public:
  explicit ConvolutionKernel(const KernelConstruction& c) : ConvolutionBase(c, depthwise) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Tensor& filter = ctx.input(1);
    const ConvolutionSpec spec = SpecFor(input.shape(), filter.shape());
    Tensor& output = ctx.AllocateOutput(0, spec.output);
    if (output.num_elements() == 0) return;
    Call(ctx, spec, cpu::ConvolutionCall)->Run(ctx, {input.raw_data(), filter.raw_data(), output.raw_data()});
  }
};

// Computes activation(convolution + bias). An activation that oneDNN cannot apply is applied in place afterwards.
template <bool depthwise>
class FusedConvolutionKernel final : public ConvolutionBase {
 public:
  explicit FusedConvolutionKernel(const KernelConstruction& c)
      : ConvolutionBase(c, depthwise), activation_(c.attr<std::string>("activation")) {
    if (activation_.empty() || cpu::CanEndIn(activation_)) return;
    after_ = cpu::FindActivation(activation_, c.attr<DType>("T"));
    if (after_.loop == nullptr) {
      throw InvalidArgumentError(StrCat("[kernels/convolution] there is no activation '", activation_, "'"));
    }
    activation_.clear();
  }

  void Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Tensor& filter = ctx.input(1);
    const Tensor& bias = ctx.input(2);
    ConvolutionSpec spec = SpecFor(input.shape(), filter.shape());
    spec.bias = true;
    spec.activation = activation_;
    if (bias.shape() != Shape{spec.output.dim(3)}) {
      throw InvalidArgumentError(StrCat("[kernels/convolution] expected a bias of shape [", spec.output.dim(3),
                                        "] for a value of shape ", spec.output, "; got ", bias.shape()));
    }
    Tensor& output = ctx.AllocateOutput(0, spec.output);
    if (output.num_elements() == 0) return;
    Call(ctx, spec, cpu::ConvolutionCall)
        ->Run(ctx, {input.raw_data(), filter.raw_data(), bias.raw_data(), output.raw_data()});
    if (after_.loop == nullptr) return;
    auto* values = static_cast<char*>(output.raw_data());
    const auto size = static_cast<int64_t>(DTypeSize(output.dtype()));
    cpu::ForBlocks(
        output.num_elements(), ctx.num_threads(),
        [&](int64_t begin, int64_t end) { after_.loop(values + begin * size, values + begin * size, end - begin); },
        after_.cost);
  }

 private:
  std::string activation_;
  cpu::ActivationLoop after_;
};

template <bool depthwise>
class InputGradientKernel final : public ConvolutionBase {
 public:
  explicit InputGradientKernel(const KernelConstruction& c) : ConvolutionBase(c, depthwise) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& filter = ctx.input(1);
    const Tensor& gradient = ctx.input(2);
    const Shape sizes(ops::IntegerValues(ctx.input(0)));
    const Shape input = depthwise ? sizes : ops::ImagesOfSizes(sizes, filter.shape(), gradient.shape());
    const ConvolutionSpec spec = SpecFor(input, filter.shape(), &gradient.shape());
    Tensor& output = ctx.AllocateOutput(0, input);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) return SetZero(output);
    Call(ctx, spec, cpu::InputGradientCall)->Run(ctx, {gradient.raw_data(), filter.raw_data(), output.raw_data()});
  }
};

template <bool depthwise>
class FilterGradientKernel final : public ConvolutionBase {
 public:
  explicit FilterGradientKernel(const KernelConstruction& c) : ConvolutionBase(c, depthwise) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Tensor& gradient = ctx.input(2);
    const Shape filter(ops::IntegerValues(ctx.input(1)));
    const ConvolutionSpec spec = SpecFor(input.shape(), filter, &gradient.shape());
    Tensor& output = ctx.AllocateOutput(0, filter);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) return SetZero(output);
    Call(ctx, spec, cpu::FilterGradientCall)->Run(ctx, {input.raw_data(), gradient.raw_data(), output.raw_data()});
  }
};

// Computes the gradients of filter and bias.
class FusedFilterGradientKernel final : public ConvolutionBase {
 public:
  explicit FusedFilterGradientKernel(const KernelConstruction& c) : ConvolutionBase(c, false) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Tensor& gradient = ctx.input(2);
    const Shape filter(ops::IntegerValues(ctx.input(1)));
    ConvolutionSpec spec = SpecFor(input.shape(), filter, &gradient.shape());
    spec.bias = true;
    Tensor& output = ctx.AllocateOutput(0, filter);
    Tensor& bias = ctx.AllocateOutput(1, Shape{filter.dim(3)});
    if (gradient.num_elements() == 0 || output.num_elements() == 0) {
      SetZero(bias);
      return SetZero(output);
    }
    Call(ctx, spec, cpu::FilterGradientCall)
        ->Run(ctx, {input.raw_data(), gradient.raw_data(), output.raw_data(), bias.raw_data()});
  }
};

}  // namespace

void RegisterConvolutionKernels(KernelRegistry& registry) {
  registry.Register<ConvolutionKernel<false>>("Conv2D", "CPU");
  registry.Register<InputGradientKernel<false>>("Conv2DBackpropInput", "CPU");
  registry.Register<FilterGradientKernel<false>>("Conv2DBackpropFilter", "CPU");
  cpu::RegisterBlockedOrderKernels(registry);
  registry.Register<ConvolutionKernel<true>>("DepthwiseConv2dNative", "CPU");
  registry.Register<FusedConvolutionKernel<false>>("_FusedConv2D", "CPU");
  registry.Register<FusedFilterGradientKernel>("_FusedConv2DBackpropFilter", "CPU");
  registry.Register<FusedConvolutionKernel<true>>("_FusedDepthwiseConv2dNative", "CPU");
  registry.Register<InputGradientKernel<true>>("DepthwiseConv2dNativeBackpropInput", "CPU");
  registry.Register<FilterGradientKernel<true>>("DepthwiseConv2dNativeBackpropFilter", "CPU");
}

}  // namespace cohort
