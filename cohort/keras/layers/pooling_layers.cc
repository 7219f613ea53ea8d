#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/image_padding.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/ops/pooling.h"
#include "cohort/ops/reduction.h"

namespace cohort::keras {
namespace {

using PoolOp = Output (*)(Output, const ops::PoolOptions&, const NodeName&);

class Pooling2DLayer final : public Layer {
 public:
  Pooling2DLayer(const char* class_name, PoolOp op, RowsColumns size, const Pooling2DOptions& options)
      : Layer(class_name, options.name), op_(op), padding_(options.padding) {
    const RowsColumns strides = options.strides.value_or(size);
    if (size.rows <= 0 || size.columns <= 0 || strides.rows <= 0 || strides.columns <= 0) {
      throw InvalidArgumentError(StrCat("[keras/pooling2d] expected a positive size and strides; got ", size.rows,
                                        " x ", size.columns, " and ", strides.rows, " x ", strides.columns));
    }
    options_ = {{size.rows, size.columns}, {strides.rows, strides.columns}, OpPadding(options.padding)};
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputRank(OnlyInput(inputs), 4, "[batch, rows, columns, channels]");
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {op_(ctx.Computed(inputs[0]), options_, class_name())};
  }
  ConfigValue::Object Config() const override {
    return {{"pool_size", ConfigValue::List(options_.size.begin(), options_.size.end())},
            {"padding", padding_},
            {"strides", ConfigValue::List(options_.strides.begin(), options_.strides.end())},
            {"data_format", "channels_last"}};
  }
  template <LayerRef (*kMake)(RowsColumns, const Pooling2DOptions&)>
  static LayerRef FromConfig(ConfigReader& reader) {
    Pooling2DOptions options = {.name = ReadName(reader)};
    RowsColumns size = 2;
    Read(reader, "pool_size", size);
    reader.ReadBy("strides", [&](const ConfigValue& value) { options.strides = RowsColumnsOf(value); });
    reader.Read("padding", options.padding);
    reader.OnlyDefault("data_format", "channels_last");
    return kMake(size, options);
  }

 private:
  const PoolOp op_;
  const std::string padding_;
  ops::PoolOptions options_;
};

class GlobalAveragePooling2DLayer final : public Layer {
 public:
  explicit GlobalAveragePooling2DLayer(const GlobalPooling2DOptions& options)
      : Layer("GlobalAveragePooling2D", options.name), keepdims_(options.keepdims) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputRank(OnlyInput(inputs), 4, "[batch, rows, columns, channels]");
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {ops::Mean(ctx.Computed(inputs[0]), {1, 2}, keepdims_)};
  }
  ConfigValue::Object Config() const override { return {{"data_format", "channels_last"}, {"keepdims", keepdims_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    GlobalPooling2DOptions options = {.name = ReadName(reader)};
    reader.Read("keepdims", options.keepdims);
    reader.OnlyDefault("data_format", "channels_last");
    return GlobalAveragePooling2D(options);
  }

 private:
  const bool keepdims_;
};

}  // namespace

std::string OpPadding(const std::string& padding) {
  if (padding == "valid") return "VALID";
  if (padding == "same") return "SAME";
  throw InvalidArgumentError(StrCat("[keras/layer] expected padding 'valid' or 'same'; got '", padding, "'"));
}

LayerRef MaxPooling2D(RowsColumns pool_size, const Pooling2DOptions& options) {
  return MakeLayer<Pooling2DLayer>("MaxPooling2D", &ops::MaxPool, pool_size, options);
}
LayerRef AveragePooling2D(RowsColumns pool_size, const Pooling2DOptions& options) {
  return MakeLayer<Pooling2DLayer>("AveragePooling2D", &ops::AvgPool, pool_size, options);
}
LayerRef GlobalAveragePooling2D(const GlobalPooling2DOptions& options) {
  return MakeLayer<GlobalAveragePooling2DLayer>(options);
}

std::vector<LayerMaker> PoolingLayerMakers() {
  return {{"MaxPooling2D", Pooling2DLayer::FromConfig<MaxPooling2D>},
          {"AveragePooling2D", Pooling2DLayer::FromConfig<AveragePooling2D>},
          {"GlobalAveragePooling2D", GlobalAveragePooling2DLayer::FromConfig}};
}

}  // namespace cohort::keras
