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

// Reduces all axes between the batch and the last one.
class GlobalPoolingLayer final : public Layer {
 public:
  using ReduceOp = Output (*)(Output, const ops::IntList&, bool, const NodeName&);
  GlobalPoolingLayer(const char* class_name, ReduceOp op, int dimensions, bool keepdims, const std::string& name)
      : Layer(class_name, name), op_(op), dimensions_(dimensions), keepdims_(keepdims) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputRank(OnlyInput(inputs), dimensions_ + 2,
                   dimensions_ == 2 ? "[batch, rows, columns, channels]" : "[batch, steps, features]");
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const ops::IntList axes = dimensions_ == 2 ? ops::IntList{1, 2} : ops::IntList{1};
    return {op_(ctx.Computed(inputs[0]), axes, keepdims_, class_name())};
  }
  ConfigValue::Object Config() const override { return {{"data_format", "channels_last"}, {"keepdims", keepdims_}}; }
  template <typename Options, LayerRef (*kMake)(const Options&)>
  static LayerRef FromConfig(ConfigReader& reader) {
    Options options = {.name = ReadName(reader)};
    reader.Read("keepdims", options.keepdims);
    reader.OnlyDefault("data_format", "channels_last");
    return kMake(options);
  }

 private:
  const ReduceOp op_;
  const int dimensions_;
  const bool keepdims_;
};
// The functions have overloads.
constexpr GlobalPoolingLayer::ReduceOp kMean = &ops::Mean;
constexpr GlobalPoolingLayer::ReduceOp kMax = &ops::Max;

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
  return MakeLayer<GlobalPoolingLayer>("GlobalAveragePooling2D", kMean, 2, options.keepdims, options.name);
}
LayerRef GlobalMaxPooling2D(const GlobalPooling2DOptions& options) {
  return MakeLayer<GlobalPoolingLayer>("GlobalMaxPooling2D", kMax, 2, options.keepdims, options.name);
}
LayerRef GlobalAveragePooling1D(const GlobalPooling1DOptions& options) {
  return MakeLayer<GlobalPoolingLayer>("GlobalAveragePooling1D", kMean, 1, options.keepdims, options.name);
}

std::vector<LayerMaker> PoolingLayerMakers() {
  return {{"MaxPooling2D", Pooling2DLayer::FromConfig<MaxPooling2D>},
          {"AveragePooling2D", Pooling2DLayer::FromConfig<AveragePooling2D>},
          {"GlobalAveragePooling2D", GlobalPoolingLayer::FromConfig<GlobalPooling2DOptions, GlobalAveragePooling2D>},
          {"GlobalMaxPooling2D", GlobalPoolingLayer::FromConfig<GlobalPooling2DOptions, GlobalMaxPooling2D>},
          {"GlobalAveragePooling1D", GlobalPoolingLayer::FromConfig<GlobalPooling1DOptions, GlobalAveragePooling1D>}};
}

}  // namespace cohort::keras
