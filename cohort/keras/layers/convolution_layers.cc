// Conv2D, DepthwiseConv2D and SeparableConv2D. They share checks, options in files, bias and activation (Finished). A
// depthwise kernel says its own fans to initializers (DepthwiseSpec).
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/image_padding.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/nn.h"

namespace cohort::keras {
namespace {

constexpr char kImages[] = "[batch, rows, columns, channels]";

void CheckPositive(const char* layer, const char* what, const RowsColumns& value) {
  if (value.rows > 0 && value.columns > 0) return;
  throw InvalidArgumentError(
      StrCat("[keras/", layer, "] expected positive ", what, "; got ", value.rows, " x ", value.columns));
}

template <typename Options>
ops::ConvolutionOptions Window(const Options& options) {
  ops::ConvolutionOptions window;
  window.strides = {options.strides.rows, options.strides.columns};
  window.dilations = {options.dilation_rate.rows, options.dilation_rate.columns};
  window.padding = OpPadding(options.padding);
  return window;
}

template <typename Options>
void CheckOptions(const char* layer, const RowsColumns& kernel_size, const Options& options) {
  CheckPositive(layer, "kernel size", kernel_size);
  CheckPositive(layer, "strides", options.strides);
  CheckPositive(layer, "dilation rate", options.dilation_rate);
  OpPadding(options.padding);
}

// Adds the bias, if there is one, and applies the activation.
template <typename Options>
Output Finished(CallContext& ctx, const Options& options, Output x) {
  if (options.use_bias) x = ops::BiasAdd(x, ctx.weight("bias"));
  return options.activation(x);
}

template <typename Options>
WeightSpec BiasSpec(const Options& options, int64_t size) {
  return {.name = "bias",
          .shape = Shape{size},
          .initializer = options.bias_initializer,
          .regularizer = options.bias_regularizer};
}

template <typename Options>
WeightSpec DepthwiseSpec(const std::string& name, const RowsColumns& size, int64_t channels, const Options& options) {
  WeightSpec spec = {.name = name,
                     .shape = Shape{size.rows, size.columns, channels, options.depth_multiplier},
                     .initializer = options.depthwise_initializer,
                     .regularizer = options.depthwise_regularizer};
  if (options.depthwise_fans == DepthwiseFans::kTrue) {
    const auto field = static_cast<double>(size.rows * size.columns);
    spec.fans = ops::FanCounts{field, field * static_cast<double>(options.depth_multiplier)};
  }
  return spec;
}

ConfigValue SizeInFile(const RowsColumns& value) { return ConfigValue::List{value.rows, value.columns}; }

// Returns the options that all convolutions have, then `more`.
template <typename Options>
ConfigValue::Object ConvolutionConfig(const RowsColumns& size, const Options& options, ConfigValue::Object more) {
  ConfigValue::Object config = {{"kernel_size", SizeInFile(size)},
                                {"strides", SizeInFile(options.strides)},
                                {"padding", options.padding},
                                {"data_format", "channels_last"},
                                {"dilation_rate", SizeInFile(options.dilation_rate)},
                                {"activation", options.activation.Serialized()},
                                {"use_bias", options.use_bias},
                                {"bias_initializer", options.bias_initializer.Serialized()},
                                {"bias_regularizer", options.bias_regularizer.Serialized()},
                                {"activity_regularizer", nullptr},
                                {"bias_constraint", nullptr}};
  for (auto& option : more) config.push_back(std::move(option));
  return config;
}

// The reverse of ConvolutionConfig, without what differs between the layers.
template <typename Options>
Options ReadConvolution(ConfigReader& reader) {
  Options options;
  ReadWeighted(reader, options);
  Read(reader, "strides", options.strides);
  reader.Read("padding", options.padding);
  reader.OnlyDefault("data_format", "channels_last");
  Read(reader, "dilation_rate", options.dilation_rate);
  Read(reader, "activation", options.activation);
  reader.Read("use_bias", options.use_bias);
  Read(reader, "bias_initializer", options.bias_initializer);
  Read(reader, "bias_regularizer", options.bias_regularizer);
  return options;
}

template <typename Options>
void ReadDepthwise(ConfigReader& reader, Options& options) {
  reader.Read("depth_multiplier", options.depth_multiplier);
  Read(reader, "depthwise_initializer", options.depthwise_initializer);
  Read(reader, "depthwise_regularizer", options.depthwise_regularizer);
}

class Conv2DLayer final : public Layer {
 public:
  Conv2DLayer(int64_t filters, RowsColumns kernel_size, const Conv2DOptions& options)
      : Layer("Conv2D", options.name, options.trainable), filters_(filters), size_(kernel_size), options_(options) {
    CheckOptions("conv2d", kernel_size, options);
    if (filters <= 0 || options.groups <= 0 || filters % options.groups != 0) {
      throw InvalidArgumentError(StrCat("[keras/conv2d] expected filters > 0 in groups of equal size; got ", filters,
                                        " filters, ", options.groups, " groups"));
    }
  }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputRank(OnlyInput(inputs), 4, kImages);
    const int64_t channels = KnownDim(inputs[0], -1);
    if (channels % options_.groups != 0) {
      throw InvalidArgumentError(StrCat("[keras/conv2d] expected channels that ", options_.groups,
                                        " groups divide; got shape ", inputs[0].shape));
    }
    std::vector<WeightSpec> weights = {{.name = "kernel",
                                        .shape = Shape{size_.rows, size_.columns, channels / options_.groups, filters_},
                                        .initializer = options_.kernel_initializer,
                                        .regularizer = options_.kernel_regularizer}};
    if (options_.use_bias) weights.push_back(BiasSpec(options_, filters_));
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {Finished(ctx, options_, ops::Conv2D(ctx.Computed(inputs[0]), ctx.weight("kernel"), Window(options_)))};
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
    auto options = ReadConvolution<Conv2DOptions>(reader);
    reader.Read("groups", options.groups);
    Read(reader, "kernel_initializer", options.kernel_initializer);
    Read(reader, "kernel_regularizer", options.kernel_regularizer);
    return Conv2D(reader.Required("filters").AsInt(), RowsColumnsOf(reader.Required("kernel_size")), options);
  }

 private:
  const int64_t filters_;
  const RowsColumns size_;
  const Conv2DOptions options_;
};

class DepthwiseConv2DLayer final : public Layer {
 public:
  DepthwiseConv2DLayer(RowsColumns kernel_size, const DepthwiseConv2DOptions& options)
      : Layer("DepthwiseConv2D", options.name, options.trainable), size_(kernel_size), options_(options) {
    CheckOptions("depthwise_conv2d", kernel_size, options);
  }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputRank(OnlyInput(inputs), 4, kImages);
    const int64_t channels = KnownDim(inputs[0], -1);
    std::vector<WeightSpec> weights = {DepthwiseSpec("kernel", size_, channels, options_)};
    if (options_.use_bias) weights.push_back(BiasSpec(options_, channels * options_.depth_multiplier));
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {Finished(ctx, options_,
                     ops::DepthwiseConv2dNative(ctx.Computed(inputs[0]), ctx.weight("kernel"), Window(options_)))};
  }

  ConfigValue::Object Config() const override {
    return ConvolutionConfig(size_, options_,
                             {{"depth_multiplier", options_.depth_multiplier},
                              {"depthwise_initializer", options_.depthwise_initializer.Serialized()},
                              {"depthwise_regularizer", options_.depthwise_regularizer.Serialized()},
                              {"depthwise_constraint", nullptr}});
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    auto options = ReadConvolution<DepthwiseConv2DOptions>(reader);
    ReadDepthwise(reader, options);
    // These are options of the base class in Keras; a depthwise layer does not use them.
    for (const char* name : {"filters", "groups", "kernel_initializer", "kernel_regularizer"}) reader.Ignore(name);
    return DepthwiseConv2D(RowsColumnsOf(reader.Required("kernel_size")), options);
  }

 private:
  const RowsColumns size_;
  const DepthwiseConv2DOptions options_;
};

class SeparableConv2DLayer final : public Layer {
 public:
  SeparableConv2DLayer(int64_t filters, RowsColumns kernel_size, const SeparableConv2DOptions& options)
      : Layer("SeparableConv2D", options.name, options.trainable),
        filters_(filters),
        size_(kernel_size),
        options_(options) {
    CheckOptions("separable_conv2d", kernel_size, options);
    if (filters <= 0)
      throw InvalidArgumentError(StrCat("[keras/separable_conv2d] expected filters > 0; got ", filters));
  }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputRank(OnlyInput(inputs), 4, kImages);
    const int64_t channels = KnownDim(inputs[0], -1);
    std::vector<WeightSpec> weights = {DepthwiseSpec("depthwise_kernel", size_, channels, options_),
                                       {.name = "pointwise_kernel",
                                        .shape = Shape{1, 1, channels * options_.depth_multiplier, filters_},
                                        .initializer = options_.pointwise_initializer,
                                        .regularizer = options_.pointwise_regularizer}};
    if (options_.use_bias) weights.push_back(BiasSpec(options_, filters_));
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output depthwise =
        ops::DepthwiseConv2dNative(ctx.Computed(inputs[0]), ctx.weight("depthwise_kernel"), Window(options_));
    return {Finished(ctx, options_, ops::Conv2D(depthwise, ctx.weight("pointwise_kernel")))};
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
    auto options = ReadConvolution<SeparableConv2DOptions>(reader);
    ReadDepthwise(reader, options);
    Read(reader, "pointwise_initializer", options.pointwise_initializer);
    Read(reader, "pointwise_regularizer", options.pointwise_regularizer);
    for (const char* name : {"groups", "kernel_initializer", "kernel_regularizer"}) reader.Ignore(name);
    return SeparableConv2D(reader.Required("filters").AsInt(), RowsColumnsOf(reader.Required("kernel_size")), options);
  }

 private:
  const int64_t filters_;
  const RowsColumns size_;
  const SeparableConv2DOptions options_;
};

}  // namespace

LayerRef Conv2D(int64_t filters, RowsColumns kernel_size, const Conv2DOptions& options) {
  return MakeLayer<Conv2DLayer>(filters, kernel_size, options).WithInputShape(options.input_shape);
}
LayerRef DepthwiseConv2D(RowsColumns kernel_size, const DepthwiseConv2DOptions& options) {
  return MakeLayer<DepthwiseConv2DLayer>(kernel_size, options).WithInputShape(options.input_shape);
}
LayerRef SeparableConv2D(int64_t filters, RowsColumns kernel_size, const SeparableConv2DOptions& options) {
  return MakeLayer<SeparableConv2DLayer>(filters, kernel_size, options).WithInputShape(options.input_shape);
}

std::vector<LayerMaker> ConvolutionLayerMakers() {
  return {{"Conv2D", Conv2DLayer::FromConfig},
          {"DepthwiseConv2D", DepthwiseConv2DLayer::FromConfig},
          {"SeparableConv2D", SeparableConv2DLayer::FromConfig}};
}

}  // namespace cohort::keras
