// Convolutions of images and their gradients. There are three ways to compute one:
// - a filter with one input channel (each depthwise filter is one): kernels of our own (depthwise.cu);
// - a filter that is a single point, with strides of 1: it is a product of matrices (product.h);
// - any other: Dnn, which wants its filter transposed, and the same padding before and after the image (DnnCall).
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "cohort/backends/cuda/kernels/activation.h"
#include "cohort/backends/cuda/kernels/depthwise.cu.h"
#include "cohort/backends/cuda/kernels/image_layout.cu.h"
#include "cohort/backends/cuda/kernels/library_calls.h"
#include "cohort/backends/cuda/kernels/product.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/libraries/dnn.h"
#include "cohort/device/logical_devices.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/window.h"

namespace cohort::cuda {
namespace {

// Sizes of one convolution.
struct Convolution {
  DType dtype = DType::kFloat32;
  ops::WindowAttrs window;
  Shape input;   // [batch, rows, columns, in]
  Shape filter;  // [rows, columns, in / groups, out]; for a depthwise convolution [rows, columns, 1, channels *
                 // multiplier]
  Shape output;  // [batch, rows, columns, out]
  Activation of_input = Activation::kNone;  // is applied to the input first; only kernels of our own do it
  std::array<ops::WindowExtent, 2> extents;

  int64_t groups() const { return input.dim(3) / filter.dim(2); }
  bool has_own_kernels() const { return filter.dim(2) == 1; }
  bool is_product() const {
    for (size_t axis = 0; axis < 2; ++axis) {
      const bool is_point = filter.dim(static_cast<int>(axis)) == 1 && window.strides[axis] == 1 &&
                            extents[axis].before == 0 && extents[axis].after == 0;
      if (!is_point) return false;
    }
    return groups() == 1;
  }
  int64_t points() const { return input.Sub(0, 3).num_elements(); }
};

DepthwiseSizes DepthwiseOf(const Convolution& c) {
  DepthwiseSizes s;
  s.batch = c.input.dim(0);
  s.channels = c.input.dim(3);
  s.multiplier = c.filter.dim(3) / s.channels;
  for (int axis = 0; axis < 2; ++axis) {
    const auto i = static_cast<size_t>(axis);
    s.in[axis] = c.input.dim(axis + 1);
    s.out[axis] = c.output.dim(axis + 1);
    s.filter[axis] = c.filter.dim(axis);
    s.strides[axis] = c.window.strides[i];
    s.dilations[axis] = c.window.dilations[i];
    s.before[axis] = c.extents[i].before;
  }
  return s;
}

// An operand that Dnn reads: the tensor's memory, or a copy in scratch memory if Dnn does not take the tensor's
// address. A slice of a tensor may begin at any element.
class AlignedOperand {
 public:
  AlignedOperand(const CudaCall& call, const void* data, size_t bytes)
      : copy_(call, IsDnnAddress(data) ? 0 : bytes), data_(copy_.data() == nullptr ? data : copy_.data()) {
    if (data_ != data) call.driver().CopyAsync(copy_.data(), data, bytes, Driver::Copy::kOnDevice, call.stream());
  }
  void* data() const { return const_cast<void*>(data_); }

 private:
  const Scratch copy_;
  const void* const data_;
};

// A call of Dnn. Its filter is the transpose of ours. If the padding after the image is not that before it, the image
// gets the difference as rows and columns of zeros, in scratch memory.
class DnnCall {
 public:
  DnnCall(const CudaCall& call, const Convolution& c) : call_(call), c_(c) {
    spec_.dtype = c.dtype;
    spec_.batch = c.input.dim(0);
    spec_.in_channels = c.input.dim(3);
    spec_.out_channels = c.output.dim(3);
    spec_.groups = c.groups();
    spec_.strides = c.window.strides;
    spec_.dilations = c.window.dilations;
    spec_.tensor_float_32 = c.dtype == DType::kFloat32 && config::TensorFloat32ExecutionEnabled();
    for (int axis = 0; axis < 2; ++axis) {
      const auto i = static_cast<size_t>(axis);
      const ops::WindowExtent& extent = c.extents[i];
      spec_.padding[i] = std::min(extent.before, extent.after);
      lead_[i] = extent.before - spec_.padding[i];
      spec_.in_size[i] = c.input.dim(axis + 1) + lead_[i] + extent.after - spec_.padding[i];
      spec_.filter_size[i] = c.filter.dim(axis);
      spec_.out_size[i] = c.output.dim(axis + 1);
    }
  }

  void Output(const void* input, const void* filter, void* output) const {
    const Scratch padded(call_, pads() ? ImageBytes() : 0);
    const Scratch turned(call_, FilterBytes());
    Turn(filter, turned.data());
    const AlignedOperand image(call_, Padded(input, padded), BytesOf(c_.input));
    Compute(ConvolutionPart::kOutput, {image.data(), turned.data(), output});
  }

  void InputGradient(const void* filter, const void* output, void* input) const {
    const Scratch padded(call_, pads() ? ImageBytes() : 0);
    const Scratch turned(call_, FilterBytes());
    Turn(filter, turned.data());
    void* result = pads() ? padded.data() : input;
    const AlignedOperand gradient(call_, output, BytesOf(c_.output));
    Compute(ConvolutionPart::kInputGradient, {result, turned.data(), gradient.data()});
    if (pads()) CopyImage(result, spec_.in_size, input, InSize(), {-lead_[0], -lead_[1]});
  }

  void FilterGradient(const void* input, const void* output, void* filter) const {
    const Scratch padded(call_, pads() ? ImageBytes() : 0);
    const Scratch turned(call_, FilterBytes());
    const AlignedOperand image(call_, Padded(input, padded), BytesOf(c_.input));
    const AlignedOperand gradient(call_, output, BytesOf(c_.output));
    Compute(ConvolutionPart::kFilterGradient, {image.data(), turned.data(), gradient.data()});
    LaunchTranspose(call_.driver(), call_.stream(), DTypeSize(c_.dtype), c_.filter.dim(3), FilterRows(), turned.data(),
                    filter);
  }

 private:
  using Size = std::array<int64_t, 2>;

  bool pads() const { return spec_.in_size != InSize(); }
  Size InSize() const { return {c_.input.dim(1), c_.input.dim(2)}; }
  size_t ImageBytes() const {
    return static_cast<size_t>(spec_.batch * spec_.in_size[0] * spec_.in_size[1] * spec_.in_channels) *
           DTypeSize(c_.dtype);
  }
  int64_t FilterRows() const { return c_.filter.Sub(0, 3).num_elements(); }
  size_t BytesOf(const Shape& shape) const { return static_cast<size_t>(shape.num_elements()) * DTypeSize(c_.dtype); }
  size_t FilterBytes() const { return BytesOf(c_.filter); }

  void Turn(const void* filter, void* turned) const {
    LaunchTranspose(call_.driver(), call_.stream(), DTypeSize(c_.dtype), FilterRows(), c_.filter.dim(3), filter,
                    turned);
  }

  const void* Padded(const void* input, const Scratch& padded) const {
    if (!pads()) return input;
    CopyImage(input, InSize(), padded.data(), spec_.in_size, lead_);
    return padded.data();
  }

  void CopyImage(const void* from, const Size& from_size, void* to, const Size& to_size, const Size& shift) const {
    LaunchImageCopy(
        call_.driver(), call_.stream(), DTypeSize(c_.dtype),
        {spec_.batch, spec_.in_channels, from_size[0], from_size[1], to_size[0], to_size[1], shift[0], shift[1]}, from,
        to);
  }

  void Compute(ConvolutionPart part, const DnnOperands& operands) const {
    EnqueueConvolution(call_, part, spec_, operands);
  }

  const CudaCall& call_;
  const Convolution& c_;
  DnnConvolution spec_;
  Size lead_{};
};

// Enqueues the convolution. If there is a bias, adds it, and then applies the activation.
void Forward(const CudaCall& call, const Convolution& c, const Tensor& input, const Tensor& filter, const Tensor* bias,
             Activation activation, Tensor& output) {
  if (c.has_own_kernels()) {
    return LaunchDepthwise(call.driver(), call.stream(), ElementTypeOf(c.dtype), DepthwiseOf(c), input.raw_data(),
                           filter.raw_data(), bias == nullptr ? nullptr : bias->raw_data(), activation,
                           output.raw_data(), c.of_input);
  }
  if (c.is_product()) {
    GemmSpec spec;
    spec.dtype = c.dtype;
    spec.m = c.points();
    spec.n = c.filter.dim(3);
    spec.k = c.filter.dim(2);
    const GemmOperands operands = {input.raw_data(), filter.raw_data(), nullptr, output.raw_data()};
    if (bias == nullptr) return Multiply(call, spec, operands);
    return MultiplyAndEnd(call, spec, operands, activation, *bias, output);
  }
  DnnCall(call, c).Output(input.raw_data(), filter.raw_data(), output.raw_data());
  if (bias != nullptr) AddBias(call, activation, *bias, output);
}

void InputGradient(const CudaCall& call, const Convolution& c, const Tensor& filter, const Tensor& gradient,
                   Tensor& output) {
  if (c.has_own_kernels()) {
    return LaunchDepthwiseInputGradient(call.driver(), call.stream(), ElementTypeOf(c.dtype), DepthwiseOf(c),
                                        filter.raw_data(), gradient.raw_data(), output.raw_data());
  }
  if (c.is_product()) {
    GemmSpec spec;
    spec.dtype = c.dtype;
    spec.m = c.points();
    spec.n = c.filter.dim(2);
    spec.k = c.filter.dim(3);
    spec.transpose_b = true;
    return Multiply(call, spec, {gradient.raw_data(), filter.raw_data(), nullptr, output.raw_data()});
  }
  DnnCall(call, c).InputGradient(filter.raw_data(), gradient.raw_data(), output.raw_data());
}

void FilterGradient(const CudaCall& call, const Convolution& c, const Tensor& input, const Tensor& gradient,
                    Tensor& output) {
  if (c.has_own_kernels()) {
    const DepthwiseSizes sizes = DepthwiseOf(c);
    const Scratch scratch(call, DepthwiseFilterGradientBytes(sizes));
    return LaunchDepthwiseFilterGradient(call.driver(), call.stream(), ElementTypeOf(c.dtype), sizes, input.raw_data(),
                                         gradient.raw_data(), output.raw_data(), scratch.data(), c.of_input);
  }
  if (c.is_product()) {
    GemmSpec spec;
    spec.dtype = c.dtype;
    spec.m = c.filter.dim(2);
    spec.n = c.filter.dim(3);
    spec.k = c.points();
    spec.transpose_a = true;
    return Multiply(call, spec, {input.raw_data(), gradient.raw_data(), nullptr, output.raw_data()});
  }
  DnnCall(call, c).FilterGradient(input.raw_data(), gradient.raw_data(), output.raw_data());
}

// The common part of the kernels of convolutions: attributes and shapes.
class ConvolutionBase : public OpKernel {
 protected:
  ConvolutionBase(const KernelConstruction& c, bool depthwise)
      : dtype_(c.attr<DType>("T")),
        depthwise_(depthwise),
        window_(ops::ConvolutionWindow(c)),
        of_input_(InputActivation(c)) {}

  // Throws InvalidArgumentError for shapes that do not fit. `output` is given if it is an operand.
  Convolution SizesFor(const Shape& input, const Shape& filter, const Shape* output = nullptr) const {
    Convolution c;
    c.dtype = dtype_;
    c.window = window_;
    c.of_input = of_input_;
    c.input = input;
    c.output = ops::ConvolvedShape(window_, input, filter, depthwise_);
    c.filter = depthwise_ ? Shape{filter.dim(0), filter.dim(1), 1, filter.dim(2) * filter.dim(3)} : filter;
    if (output != nullptr && *output != c.output) {
      throw InvalidArgumentError(StrCat("[kernels/convolution] expected a gradient of shape ", c.output, " for input ",
                                        input, " and filter ", filter, "; got ", *output));
    }
    for (int axis = 0; axis < 2; ++axis) {
      c.extents[static_cast<size_t>(axis)] = ops::PlaceWindow(window_, axis, input.dim(axis + 1), filter.dim(axis));
    }
    return c;
  }

 private:
  const DType dtype_;
  const bool depthwise_;
  const ops::WindowAttrs window_;
  const Activation of_input_;
};

template <bool depthwise>
class ConvolutionKernel final : public ConvolutionBase {
 public:
  explicit ConvolutionKernel(const KernelConstruction& c) : ConvolutionBase(c, depthwise) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Convolution c = SizesFor(ctx.input(0).shape(), ctx.input(1).shape());
    Tensor& output = ctx.AllocateOutput(0, c.output);
    if (output.num_elements() == 0) return;
    Forward(call, c, ctx.input(0), ctx.input(1), nullptr, Activation::kNone, output);
  }
};

// Computes activation(convolution + bias).
template <bool depthwise>
class FusedConvolutionKernel final : public ConvolutionBase {
 public:
  explicit FusedConvolutionKernel(const KernelConstruction& c)
      : ConvolutionBase(c, depthwise), activation_(FindActivation(c.attr<std::string>("activation"))) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Convolution c = SizesFor(ctx.input(0).shape(), ctx.input(1).shape());
    const Tensor& bias = ctx.input(2);
    if (bias.shape() != Shape{c.output.dim(3)}) {
      throw InvalidArgumentError(StrCat("[kernels/convolution] expected a bias of shape [", c.output.dim(3),
                                        "] for a value of shape ", c.output, "; got ", bias.shape()));
    }
    Tensor& output = ctx.AllocateOutput(0, c.output);
    if (output.num_elements() == 0) return;
    Forward(call, c, ctx.input(0), ctx.input(1), &bias, activation_, output);
  }

 private:
  const Activation activation_;
};

template <bool depthwise>
class InputGradientKernel final : public ConvolutionBase {
 public:
  explicit InputGradientKernel(const KernelConstruction& c) : ConvolutionBase(c, depthwise) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& filter = ctx.input(1);
    const Tensor& gradient = ctx.input(2);
    const Shape sizes(ops::IntegerValues(ctx.input(0)));
    const Shape input = depthwise ? sizes : ops::ImagesOfSizes(sizes, filter.shape(), gradient.shape());
    const Convolution c = SizesFor(input, filter.shape(), &gradient.shape());
    Tensor& output = ctx.AllocateOutput(0, input);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) return FillZero(call, output);
    InputGradient(call, c, filter, gradient, output);
  }
};

// The gradient of a depthwise convolution by its input, and behind it the gradient of the activation of the input.
class FusedInputGradientKernel final : public ConvolutionBase {
 public:
  explicit FusedInputGradientKernel(const KernelConstruction& c)
      : ConvolutionBase(c, true), applied_(GradientToApply(c)) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& filter = ctx.input(1);
    const Tensor& gradient = ctx.input(2);
    const Tensor& activated = ctx.input(3);
    const Shape input(ops::IntegerValues(ctx.input(0)));
    const Convolution c = SizesFor(input, filter.shape(), &gradient.shape());
    CheckActivated(activated.shape(), input);
    Tensor& output = ctx.AllocateOutput(0, input);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) return FillZero(call, output);
    AppliedGradient applied = applied_;
    applied.activated = activated.raw_data();
    LaunchDepthwiseInputGradient(call.driver(), call.stream(), ElementTypeOf(c.dtype), DepthwiseOf(c),
                                 filter.raw_data(), gradient.raw_data(), output.raw_data(), applied);
  }

 private:
  const AppliedGradient applied_;
};

template <bool depthwise>
class FilterGradientKernel final : public ConvolutionBase {
 public:
  explicit FilterGradientKernel(const KernelConstruction& c) : ConvolutionBase(c, depthwise) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& gradient = ctx.input(2);
    const Shape filter(ops::IntegerValues(ctx.input(1)));
    const Convolution c = SizesFor(ctx.input(0).shape(), filter, &gradient.shape());
    Tensor& output = ctx.AllocateOutput(0, filter);
    if (output.num_elements() == 0) return;
    if (gradient.num_elements() == 0) return FillZero(call, output);
    FilterGradient(call, c, ctx.input(0), gradient, output);
  }
};

// Computes the gradients of filter and bias.
class FusedFilterGradientKernel final : public ConvolutionBase {
 public:
  explicit FusedFilterGradientKernel(const KernelConstruction& c) : ConvolutionBase(c, false) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& gradient = ctx.input(2);
    const Shape filter(ops::IntegerValues(ctx.input(1)));
    const Convolution c = SizesFor(ctx.input(0).shape(), filter, &gradient.shape());
    Tensor& output = ctx.AllocateOutput(0, filter);
    Tensor& bias = ctx.AllocateOutput(1, Shape{filter.dim(3)});
    if (gradient.num_elements() == 0 || output.num_elements() == 0) {
      FillZero(call, bias);
      return FillZero(call, output);
    }
    FilterGradient(call, c, ctx.input(0), gradient, output);
    SumToBias(call, gradient, bias);
  }
};

}  // namespace

void RegisterConvolutionKernels(KernelRegistry& registry) {
  registry.Register<ConvolutionKernel<false>>("Conv2D", kGpu);
  registry.Register<InputGradientKernel<false>>("Conv2DBackpropInput", kGpu);
  registry.Register<FilterGradientKernel<false>>("Conv2DBackpropFilter", kGpu);
  registry.Register<ConvolutionKernel<true>>("DepthwiseConv2dNative", kGpu);
  registry.Register<InputGradientKernel<true>>("DepthwiseConv2dNativeBackpropInput", kGpu);
  registry.Register<FilterGradientKernel<true>>("DepthwiseConv2dNativeBackpropFilter", kGpu);
  registry.Register<FusedInputGradientKernel>("_FusedDepthwiseConv2dNativeBackpropInput", kGpu);
  registry.Register<FusedConvolutionKernel<false>>("_FusedConv2D", kGpu);
  registry.Register<FusedConvolutionKernel<true>>("_FusedDepthwiseConv2dNative", kGpu);
  registry.Register<FusedFilterGradientKernel>("_FusedConv2DBackpropFilter", kGpu);
}

}  // namespace cohort::cuda
