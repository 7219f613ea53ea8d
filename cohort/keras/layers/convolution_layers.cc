// Conv1D, Conv2D, DepthwiseConv1D, DepthwiseConv2D, SeparableConv1D and SeparableConv2D. Each kind of convolution is
// one template, for images and for sequences (window_options.h). A depthwise kernel says its own fans to initializers
// (DepthwiseSpec).
#include "cohort/keras/layers/window_options.h"

namespace cohort::keras {
namespace {

template <typename Options>
WeightSpec DepthwiseSpec(const std::string& name, const WindowSize<Options>& size, int64_t channels,
                         const Options& options) {
  if (options.depth_multiplier < 1) {
    throw InvalidArgumentError(
        StrCat("[keras/convolution] expected depth_multiplier >= 1; got ", options.depth_multiplier));
  }
  WeightSpec spec = {.name = name,
                     .shape = KernelShape(size, channels, options.depth_multiplier),
                     .initializer = options.depthwise_initializer,
                     .regularizer = options.depthwise_regularizer};
  if (options.depthwise_fans == DepthwiseFans::kTrue) {
    const auto field = static_cast<double>(InImage(size).rows * InImage(size).columns);
    spec.fans = ops::FanCounts{field, field * static_cast<double>(options.depth_multiplier)};
  }
  return spec;
}

template <typename Options>
void ReadDepthwise(ConfigReader& reader, Options& options) {
  reader.Read("depth_multiplier", options.depth_multiplier);
  Read(reader, "depthwise_initializer", options.depthwise_initializer);
  Read(reader, "depthwise_regularizer", options.depthwise_regularizer);
}

template <typename Options, LayerRef (*kMake)(int64_t, WindowSize<Options>, const Options&)>
class ConvolutionLayer final : public Layer {
 public:
  ConvolutionLayer(const char* class_name, int64_t filters, WindowSize<Options> kernel_size, const Options& options)
      : Layer(class_name, options.name, options.trainable),
        filters_(filters),
        size_(kernel_size),
        options_(options),
        window_(CheckedWindow(class_name, kernel_size, options)) {
    if (filters <= 0 || options.groups <= 0 || filters % options.groups != 0) {
      throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name),
                                        "] expected filters > 0 in groups of equal size; got ", filters, " filters, ",
                                        options.groups, " groups"));
    }
  }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckConvolutionInput<Options>(inputs);
    const int64_t channels = KnownDim(inputs[0], -1);
    if (channels % options_.groups != 0) {
      throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name()), "] expected channels that ",
                                        options_.groups, " groups divide; got shape ", inputs[0].shape));
    }
    std::vector<WeightSpec> weights = {{.name = "kernel",
                                        .shape = KernelShape(size_, channels / options_.groups, filters_),
                                        .initializer = options_.kernel_initializer,
                                        .regularizer = options_.kernel_regularizer}};
    if (options_.use_bias) weights.push_back(BiasSpec(options_, filters_));
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output images = ImageOf<Options>(ctx.Computed(inputs[0]));
    return {Finished(ctx, options_, ops::Conv2D(images, ImageKernelOf<Options>(ctx.weight("kernel")), window_))};
  }

  ConfigValue::Object Config() const override {
    return ConvolutionConfig(size_, options_,
                             {{"filters", filters_},
                              {"groups", options_.groups},
                              {"kernel_initializer", options_.kernel_initializer.Serialized()},
                              {"kernel_regularizer", options_.kernel_regularizer.Serialized()},
                              {"kernel_constraint", nullptr}});
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    auto options = ReadConvolution<Options>(reader);
    reader.Read("groups", options.groups);
    Read(reader, "kernel_initializer", options.kernel_initializer);
    Read(reader, "kernel_regularizer", options.kernel_regularizer);
    return kMake(reader.Required("filters").AsInt(), SizeFromFile<WindowSize<Options>>(reader.Required("kernel_size")),
                 options);
  }

 private:
  const int64_t filters_;
  const WindowSize<Options> size_;
  const Options options_;
  const ops::ConvolutionOptions window_;
};
using Conv1DLayer = ConvolutionLayer<Conv1DOptions, Conv1D>;
using Conv2DLayer = ConvolutionLayer<Conv2DOptions, Conv2D>;

template <typename Options, LayerRef (*kMake)(WindowSize<Options>, const Options&)>
class DepthwiseLayer final : public Layer {
 public:
  DepthwiseLayer(const char* class_name, WindowSize<Options> kernel_size, const Options& options)
      : Layer(class_name, options.name, options.trainable),
        size_(kernel_size),
        options_(options),
        window_(CheckedWindow(class_name, kernel_size, options)) {}

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckConvolutionInput<Options>(inputs);
    const int64_t channels = KnownDim(inputs[0], -1);
    std::vector<WeightSpec> weights = {DepthwiseSpec("kernel", size_, channels, options_)};
    if (options_.use_bias) weights.push_back(BiasSpec(options_, channels * options_.depth_multiplier));
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output images = ImageOf<Options>(ctx.Computed(inputs[0]));
    const Output kernel = ImageKernelOf<Options>(ctx.weight("kernel"));
    return {Finished(ctx, options_, ops::DepthwiseConv2dNative(images, kernel, window_))};
  }

  ConfigValue::Object Config() const override {
    return ConvolutionConfig(size_, options_,
                             {{"depth_multiplier", options_.depth_multiplier},
                              {"depthwise_initializer", options_.depthwise_initializer.Serialized()},
                              {"depthwise_regularizer", options_.depthwise_regularizer.Serialized()},
                              {"depthwise_constraint", nullptr}});
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    auto options = ReadConvolution<Options>(reader);
    ReadDepthwise(reader, options);
    // These are options of the base class in Keras; a depthwise layer does not use them.
    for (const char* name : {"filters", "groups", "kernel_initializer", "kernel_regularizer"}) reader.Ignore(name);
    return kMake(SizeFromFile<WindowSize<Options>>(reader.Required("kernel_size")), options);
  }

 private:
  const WindowSize<Options> size_;
  const Options options_;
  const ops::ConvolutionOptions window_;
};
using DepthwiseConv1DLayer = DepthwiseLayer<DepthwiseConv1DOptions, DepthwiseConv1D>;
using DepthwiseConv2DLayer = DepthwiseLayer<DepthwiseConv2DOptions, DepthwiseConv2D>;

template <typename Options, LayerRef (*kMake)(int64_t, WindowSize<Options>, const Options&)>
class SeparableLayer final : public Layer {
 public:
  SeparableLayer(const char* class_name, int64_t filters, WindowSize<Options> kernel_size, const Options& options)
      : Layer(class_name, options.name, options.trainable),
        filters_(filters),
        size_(kernel_size),
        options_(options),
        window_(CheckedWindow(class_name, kernel_size, options)) {
    CheckFilters(class_name, filters);
  }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckConvolutionInput<Options>(inputs);
    const int64_t channels = KnownDim(inputs[0], -1);
    std::vector<WeightSpec> weights = {
        DepthwiseSpec("depthwise_kernel", size_, channels, options_),
        {.name = "pointwise_kernel",
         .shape = KernelShape(WindowSize<Options>(1), channels * options_.depth_multiplier, filters_),
         .initializer = options_.pointwise_initializer,
         .regularizer = options_.pointwise_regularizer}};
    if (options_.use_bias) weights.push_back(BiasSpec(options_, filters_));
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output images = ImageOf<Options>(ctx.Computed(inputs[0]));
    const Output depthwise =
        ops::DepthwiseConv2dNative(images, ImageKernelOf<Options>(ctx.weight("depthwise_kernel")), window_);
    return {Finished(ctx, options_, ops::Conv2D(depthwise, ImageKernelOf<Options>(ctx.weight("pointwise_kernel"))))};
  }

  ConfigValue::Object Config() const override {
    return ConvolutionConfig(size_, options_,
                             {{"filters", filters_},
                              {"depth_multiplier", options_.depth_multiplier},
                              {"depthwise_initializer", options_.depthwise_initializer.Serialized()},
                              {"pointwise_initializer", options_.pointwise_initializer.Serialized()},
                              {"depthwise_regularizer", options_.depthwise_regularizer.Serialized()},
                              {"pointwise_regularizer", options_.pointwise_regularizer.Serialized()},
                              {"depthwise_constraint", nullptr},
                              {"pointwise_constraint", nullptr}});
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    auto options = ReadConvolution<Options>(reader);
    ReadDepthwise(reader, options);
    Read(reader, "pointwise_initializer", options.pointwise_initializer);
    Read(reader, "pointwise_regularizer", options.pointwise_regularizer);
    for (const char* name : {"groups", "kernel_initializer", "kernel_regularizer"}) reader.Ignore(name);
    return kMake(reader.Required("filters").AsInt(), SizeFromFile<WindowSize<Options>>(reader.Required("kernel_size")),
                 options);
  }

 private:
  const int64_t filters_;
  const WindowSize<Options> size_;
  const Options options_;
  const ops::ConvolutionOptions window_;
};
using SeparableConv1DLayer = SeparableLayer<SeparableConv1DOptions, SeparableConv1D>;
using SeparableConv2DLayer = SeparableLayer<SeparableConv2DOptions, SeparableConv2D>;

}  // namespace

LayerRef Conv1D(int64_t filters, int64_t kernel_size, const Conv1DOptions& options) {
  return MakeLayer<Conv1DLayer>("Conv1D", filters, kernel_size, options).WithInputShape(options.input_shape);
}
LayerRef Conv2D(int64_t filters, RowsColumns kernel_size, const Conv2DOptions& options) {
  return MakeLayer<Conv2DLayer>("Conv2D", filters, kernel_size, options).WithInputShape(options.input_shape);
}
LayerRef DepthwiseConv1D(int64_t kernel_size, const DepthwiseConv1DOptions& options) {
  return MakeLayer<DepthwiseConv1DLayer>("DepthwiseConv1D", kernel_size, options).WithInputShape(options.input_shape);
}
LayerRef DepthwiseConv2D(RowsColumns kernel_size, const DepthwiseConv2DOptions& options) {
  return MakeLayer<DepthwiseConv2DLayer>("DepthwiseConv2D", kernel_size, options).WithInputShape(options.input_shape);
}
LayerRef SeparableConv1D(int64_t filters, int64_t kernel_size, const SeparableConv1DOptions& options) {
  return MakeLayer<SeparableConv1DLayer>("SeparableConv1D", filters, kernel_size, options)
      .WithInputShape(options.input_shape);
}
LayerRef SeparableConv2D(int64_t filters, RowsColumns kernel_size, const SeparableConv2DOptions& options) {
  return MakeLayer<SeparableConv2DLayer>("SeparableConv2D", filters, kernel_size, options)
      .WithInputShape(options.input_shape);
}

std::vector<LayerMaker> ConvolutionLayerMakers() {
  return {{"Conv1D", Conv1DLayer::FromConfig},
          {"Conv2D", Conv2DLayer::FromConfig},
          {"DepthwiseConv1D", DepthwiseConv1DLayer::FromConfig},
          {"DepthwiseConv2D", DepthwiseConv2DLayer::FromConfig},
          {"SeparableConv1D", SeparableConv1DLayer::FromConfig},
          {"SeparableConv2D", SeparableConv2DLayer::FromConfig}};
}

}  // namespace cohort::keras
