// Layers and the parts of their options from their form in files.
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/input_layer.h"
#include "cohort/keras/layers/normalization_layers.h"

namespace cohort::keras {
namespace {

// ---- parts -------------------------------------------------------------------------------------------------------

int64_t ReadSeed(ConfigReader& reader) {
  int64_t seed = 0;
  reader.ReadBy("seed", [&](const ConfigValue& value) {
    // A generator's state is an object; the numbers that it gave are in the weights.
    if (!value.is_object()) seed = value.AsInt();
  });
  return seed;
}

// Which axes count as fans: ours follow from the shape.
void ReadAxes(ConfigReader& reader) {
  reader.OnlyDefault("input_axes", nullptr);
  reader.OnlyDefault("output_axes", nullptr);
}

template <Initializer (*kMake)(int64_t)>
Initializer ReadScaled(ConfigReader& reader) {
  ReadAxes(reader);
  return kMake(ReadSeed(reader));
}

template <Initializer (*kMake)(double, double, int64_t)>
Initializer ReadPair(ConfigReader& reader, const char* first_name, double first, const char* second_name,
                     double second) {
  reader.Read(first_name, first);
  reader.Read(second_name, second);
  return kMake(first, second, ReadSeed(reader));
}

Initializer ReadConstant(ConfigReader& reader) {
  double value = 0;
  reader.Read("value", value);
  return initializers::Constant(value);
}

Initializer ReadVarianceScaling(ConfigReader& reader) {
  double scale = 1.0;
  ops::FanMode mode = ops::FanMode::kFanIn;
  ops::Distribution distribution = ops::Distribution::kTruncatedNormal;
  reader.Read("scale", scale);
  reader.ReadBy("mode", [&](const ConfigValue& value) {
    static const NameTable<ops::FanMode> table(
        "mode",
        {{"fan_in", ops::FanMode::kFanIn}, {"fan_out", ops::FanMode::kFanOut}, {"fan_avg", ops::FanMode::kFanAvg}});
    mode = table.Find(value.AsString());
  });
  reader.ReadBy("distribution", [&](const ConfigValue& value) {
    static const NameTable<ops::Distribution> table("distribution",
                                                    {{"uniform", ops::Distribution::kUniform},
                                                     {"truncated_normal", ops::Distribution::kTruncatedNormal},
                                                     {"untruncated_normal", ops::Distribution::kUntruncatedNormal}});
    distribution = table.Find(value.AsString());
  });
  ReadAxes(reader);
  return initializers::VarianceScaling(scale, mode, distribution, ReadSeed(reader));
}

Regularizer ReadRegularizer(ConfigReader& reader) {
  double l1 = 0, l2 = 0;
  reader.Read("l1", l1);
  reader.Read("l2", l2);
  if (reader.class_name() == "L1") return regularizers::L1(l1);
  return reader.class_name() == "L2" ? regularizers::L2(l2) : regularizers::L1L2(l1, l2);
}

void Read(ConfigReader& reader, const char* name, Initializer& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) { to = DeserializeInitializer(value); });
}
void Read(ConfigReader& reader, const char* name, Regularizer& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) { to = DeserializeRegularizer(value); });
}
void Read(ConfigReader& reader, const char* name, ActivationFunction& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) { to = DeserializeActivation(value); });
}

// ---- layers ------------------------------------------------------------------------------------------------------

// What every layer has. The dtype is the model's; see LoadModel.
std::string ReadName(ConfigReader& reader) {
  std::string name;
  reader.Read("name", name);
  reader.Ignore("dtype");
  reader.Ignore("trainable");  // of layers without weights
  reader.OnlyDefault("activity_regularizer", nullptr);
  return name;
}

template <typename Options>
void ReadWeighted(ConfigReader& reader, Options& options) {
  options.name = ReadName(reader);
  reader.Read("trainable", options.trainable);
  for (const char* part : {"kernel", "bias", "depthwise", "pointwise", "embeddings", "beta", "gamma"}) {
    reader.OnlyDefault(StrCat(part, "_constraint").c_str(), nullptr);
  }
  reader.OnlyDefault("quantization_config", nullptr);
  reader.OnlyDefault("lora_rank", nullptr);
  reader.Ignore("lora_alpha");
}

RowsColumns RowsColumnsOf(const ConfigValue& value) {
  if (!value.is_list()) return value.AsInt();
  if (value.AsList().size() == 2) return {value.AsList()[0].AsInt(), value.AsList()[1].AsInt()};
  throw InvalidArgumentError(StrCat("[keras/serialization] expected two numbers; got ", value.ToJson()));
}

void Read(ConfigReader& reader, const char* name, RowsColumns& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) { to = RowsColumnsOf(value); });
}

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

LayerRef ReadConv2D(ConfigReader& reader) {
  auto options = ReadConvolution<Conv2DOptions>(reader);
  reader.Read("groups", options.groups);
  Read(reader, "kernel_initializer", options.kernel_initializer);
  Read(reader, "kernel_regularizer", options.kernel_regularizer);
  return Conv2D(reader.Required("filters").AsInt(), RowsColumnsOf(reader.Required("kernel_size")), options);
}

LayerRef ReadDepthwiseConv2D(ConfigReader& reader) {
  auto options = ReadConvolution<DepthwiseConv2DOptions>(reader);
  ReadDepthwise(reader, options);
  // Of the class that both derive from; a depthwise layer does not look at them.
  for (const char* name : {"filters", "groups", "kernel_initializer", "kernel_regularizer"}) reader.Ignore(name);
  return DepthwiseConv2D(RowsColumnsOf(reader.Required("kernel_size")), options);
}

LayerRef ReadSeparableConv2D(ConfigReader& reader) {
  auto options = ReadConvolution<SeparableConv2DOptions>(reader);
  ReadDepthwise(reader, options);
  Read(reader, "pointwise_initializer", options.pointwise_initializer);
  Read(reader, "pointwise_regularizer", options.pointwise_regularizer);
  for (const char* name : {"groups", "kernel_initializer", "kernel_regularizer"}) reader.Ignore(name);
  return SeparableConv2D(reader.Required("filters").AsInt(), RowsColumnsOf(reader.Required("kernel_size")), options);
}

LayerRef ReadDense(ConfigReader& reader) {
  DenseOptions options;
  ReadWeighted(reader, options);
  Read(reader, "activation", options.activation);
  reader.Read("use_bias", options.use_bias);
  Read(reader, "kernel_initializer", options.kernel_initializer);
  Read(reader, "bias_initializer", options.bias_initializer);
  Read(reader, "kernel_regularizer", options.kernel_regularizer);
  Read(reader, "bias_regularizer", options.bias_regularizer);
  return Dense(reader.Required("units").AsInt(), options);
}

LayerRef ReadEmbedding(ConfigReader& reader) {
  EmbeddingOptions options;
  ReadWeighted(reader, options);
  Read(reader, "embeddings_initializer", options.embeddings_initializer);
  Read(reader, "embeddings_regularizer", options.embeddings_regularizer);
  reader.OnlyDefault("mask_zero", false);
  return Embedding(reader.Required("input_dim").AsInt(), reader.Required("output_dim").AsInt(), options);
}

template <LayerRef (*kMake)(RowsColumns, const Pooling2DOptions&)>
LayerRef ReadPooling(ConfigReader& reader) {
  Pooling2DOptions options = {.name = ReadName(reader)};
  RowsColumns size = 2;
  Read(reader, "pool_size", size);
  reader.ReadBy("strides", [&](const ConfigValue& value) { options.strides = RowsColumnsOf(value); });
  reader.Read("padding", options.padding);
  reader.OnlyDefault("data_format", "channels_last");
  return kMake(size, options);
}

LayerRef ReadGlobalPooling(ConfigReader& reader) {
  GlobalPooling2DOptions options = {.name = ReadName(reader)};
  reader.Read("keepdims", options.keepdims);
  reader.OnlyDefault("data_format", "channels_last");
  return GlobalAveragePooling2D(options);
}

// The axis has been made -1 where it is the last one.
template <typename Options>
Options ReadNormalization(ConfigReader& reader) {
  Options options;
  ReadWeighted(reader, options);
  reader.OnlyDefault("axis", -1);
  reader.Read("epsilon", options.epsilon);
  reader.Read("center", options.center);
  reader.Read("scale", options.scale);
  Read(reader, "beta_initializer", options.beta_initializer);
  Read(reader, "gamma_initializer", options.gamma_initializer);
  Read(reader, "beta_regularizer", options.beta_regularizer);
  Read(reader, "gamma_regularizer", options.gamma_regularizer);
  return options;
}

LayerRef ReadBatchNormalization(ConfigReader& reader) {
  auto options = ReadNormalization<BatchNormalizationOptions>(reader);
  reader.Read("momentum", options.momentum);
  Read(reader, "moving_mean_initializer", options.moving_mean_initializer);
  Read(reader, "moving_variance_initializer", options.moving_variance_initializer);
  reader.Read("synchronized", options.synchronized);
  reader.OnlyDefault("renorm", false);
  reader.Ignore("renorm_clipping");
  reader.Ignore("renorm_momentum");
  return BatchNormalization(options);
}

LayerRef ReadLayerNormalization(ConfigReader& reader) {
  const auto options = ReadNormalization<LayerNormalizationOptions>(reader);
  reader.OnlyDefault("rms_scaling", false);
  return LayerNormalization(options);
}

LayerRef ReadInput(ConfigReader& reader) {
  const std::string name = ReadName(reader);
  DType dtype = DType::kFloat32;
  reader.ReadBy("dtype", [&](const ConfigValue& value) {
    dtype = DTypeFromName(value.AsString());
    if (dtype == DType::kInvalid || !(IsFloating(dtype) || IsInteger(dtype) || dtype == DType::kBool)) {
      throw InvalidArgumentError(StrCat("[keras/serialization] expected inputs of numbers; got ", value.ToJson()));
    }
  });
  reader.OnlyDefault("sparse", false);
  reader.OnlyDefault("ragged", false);
  reader.OnlyDefault("optional", false);
  const Shape shape = ShapeFromFile(reader.Required("batch_shape"));
  if (shape.rank() < 1) throw InvalidArgumentError("[keras/serialization] expected inputs [batch, ...]; got a scalar");
  return LayerRef(std::make_shared<const InputLayer>(shape.Sub(1, shape.rank()), dtype, name));
}

LayerRef ReadDropout(ConfigReader& reader) {
  DropoutOptions options = {.name = ReadName(reader)};
  options.seed = ReadSeed(reader);
  reader.OnlyDefault("noise_shape", nullptr);
  return Dropout(reader.Required("rate").AsDouble(), options);
}

LayerRef ReadFlatten(ConfigReader& reader) {
  reader.OnlyDefault("data_format", "channels_last");
  return Flatten({.name = ReadName(reader)});
}

LayerRef ReadReshape(ConfigReader& reader) {
  const Shape target = ShapeFromFile(reader.Required("target_shape"));
  return Reshape({target.dims().begin(), target.dims().end()}, {.name = ReadName(reader)});
}

LayerRef ReadActivationLayer(ConfigReader& reader) {
  ActivationFunction activation;
  Read(reader, "activation", activation);
  return Activation(activation, {.name = ReadName(reader)});
}

LayerRef ReadConcatenate(ConfigReader& reader) {
  ConcatenateOptions options = {.name = ReadName(reader)};
  reader.Read("axis", options.axis);
  return Concatenate(options);
}

const ConfigMakers<LayerRef>& LayerMakers() {
  static const ConfigMakers<LayerRef> makers(
      "layer", {{"InputLayer", ReadInput},
                {"Dense", ReadDense},
                {"Conv2D", ReadConv2D},
                {"DepthwiseConv2D", ReadDepthwiseConv2D},
                {"SeparableConv2D", ReadSeparableConv2D},
                {"MaxPooling2D", ReadPooling<MaxPooling2D>},
                {"AveragePooling2D", ReadPooling<AveragePooling2D>},
                {"GlobalAveragePooling2D", ReadGlobalPooling},
                {"Flatten", ReadFlatten},
                {"Reshape", ReadReshape},
                {"Activation", ReadActivationLayer},
                {"Dropout", ReadDropout},
                {"BatchNormalization", ReadBatchNormalization},
                {"LayerNormalization", ReadLayerNormalization},
                {"Embedding", ReadEmbedding},
                {"Add", [](ConfigReader& reader) { return Add({.name = ReadName(reader)}); }},
                {"Concatenate", ReadConcatenate}});
  return makers;
}

// The "axis" of a normalization as -1, where it is the last one of the shape that the layer was built for.
ConfigValue WithLastAxis(const ConfigValue& value) {
  const ConfigValue* axis = value.At("config").Find("axis");
  if (axis == nullptr || value.At("class_name").AsString() == "Concatenate") return value;
  const ConfigValue* only = axis;
  if (axis->is_list() && axis->AsList().size() == 1) only = &axis->AsList()[0];
  if (only->is_list() || only->is_null()) return value;
  const ConfigValue* built = value.Find("build_config");
  const ConfigValue* shape = built != nullptr ? built->Find("input_shape") : nullptr;
  const bool last = only->AsInt() == -1 || (shape != nullptr && shape->is_list() &&
                                            only->AsInt() == static_cast<int64_t>(shape->AsList().size()) - 1);
  if (!last) return value;
  ConfigValue result = value;
  ConfigValue config = value.At("config");
  config.Set("axis", -1);
  result.Set("config", std::move(config));
  return result;
}

}  // namespace

Initializer DeserializeInitializer(const ConfigValue& value) {
  if (value.is_null()) return {};
  const std::string name = NameIn(value);
  if (!name.empty()) return name;
  using namespace initializers;
  static const ConfigMakers<Initializer> makers(
      "initializer",
      {{"Zeros", [](ConfigReader&) { return Zeros(); }},
       {"Ones", [](ConfigReader&) { return Ones(); }},
       {"Constant", ReadConstant},
       {"RandomNormal", [](ConfigReader& r) { return ReadPair<RandomNormal>(r, "mean", 0.0, "stddev", 0.05); }},
       {"RandomUniform", [](ConfigReader& r) { return ReadPair<RandomUniform>(r, "minval", -0.05, "maxval", 0.05); }},
       {"TruncatedNormal", [](ConfigReader& r) { return ReadPair<TruncatedNormal>(r, "mean", 0.0, "stddev", 0.05); }},
       {"VarianceScaling", ReadVarianceScaling},
       {"GlorotUniform", ReadScaled<GlorotUniform>},
       {"GlorotNormal", ReadScaled<GlorotNormal>},
       {"HeUniform", ReadScaled<HeUniform>},
       {"HeNormal", ReadScaled<HeNormal>},
       {"LecunUniform", ReadScaled<LecunUniform>},
       {"LecunNormal", ReadScaled<LecunNormal>}});
  return MakeFromConfig("initializer", makers, value);
}

Regularizer DeserializeRegularizer(const ConfigValue& value) {
  if (value.is_null()) return {};
  const std::string name = NameIn(value);
  if (!name.empty()) return name;
  static const ConfigMakers<Regularizer> makers(
      "regularizer", {{"L1", ReadRegularizer}, {"L2", ReadRegularizer}, {"L1L2", ReadRegularizer}});
  return MakeFromConfig("regularizer", makers, value);
}

ActivationFunction DeserializeActivation(const ConfigValue& value) {
  if (value.is_null()) return {};
  const std::string name = NameIn(value);
  if (!name.empty()) return name;
  throw InvalidArgumentError(
      StrCat("[keras/serialization] expected the name of an activation function; got ", value.ToJson()));
}

LayerRef DeserializeLayer(const ConfigValue& value) {
  return MakeFromConfig("layer", LayerMakers(), WithLastAxis(value));
}

bool IsKerasLayer(const std::string& class_name) { return LayerMakers().TryFind(class_name) != nullptr; }
std::vector<std::string> KerasLayerNames() { return LayerMakers().names(); }

}  // namespace cohort::keras
