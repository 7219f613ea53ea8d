// Pools and global pools, of images and of sequences. The pools of sequences [batch, steps, channels] are pools of
// images [batch, 1, steps, channels] whose windows have one row, so that there are no kernels and ONNX forms for
// sequences.
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/window_options.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/pooling.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/select.h"

namespace cohort::keras {
namespace {

using PoolOp = Output (*)(Output, const ops::PoolOptions&, const NodeName&);

// The type of sizes in the options of a pool: RowsColumns for images, int64_t for sequences.
template <typename Options>
using PoolSize = typename decltype(Options::strides)::value_type;

template <typename Options>
class PoolingLayer final : public Layer {
 public:
  using Size = PoolSize<Options>;
  static constexpr bool kSteps = std::is_same_v<Size, int64_t>;

  PoolingLayer(const char* class_name, PoolOp op, Size size, const Options& options)
      : Layer(class_name, options.name),
        op_(op),
        size_(size),
        strides_(options.strides.value_or(size)),
        padding_(options.padding) {
    const RowsColumns window = InImage(size_), strides = InImage(strides_);
    if (window.rows <= 0 || window.columns <= 0 || strides.rows <= 0 || strides.columns <= 0) {
      throw InvalidArgumentError(StrCat("[keras/", kSteps ? "pooling1d" : "pooling2d",
                                        "] expected a positive size and strides; got ", window.rows, " x ",
                                        window.columns, " and ", strides.rows, " x ", strides.columns));
    }
    options_ = {{window.rows, window.columns}, {strides.rows, strides.columns}, OpPadding(options.padding)};
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputRank(OnlyInput(inputs), kSteps ? 3 : 4,
                   kSteps ? "[batch, steps, channels]" : "[batch, rows, columns, channels]");
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output x = ctx.Computed(inputs[0]);
    if (!kSteps) return {op_(x, options_, class_name())};
    return {ops::Squeeze(op_(ops::ExpandDims(x, 1), options_, class_name()), {1})};
  }
  ConfigValue::Object Config() const override {
    return {{"pool_size", SizeInFile(size_)},
            {"padding", padding_},
            {"strides", SizeInFile(strides_)},
            {"data_format", "channels_last"}};
  }
  template <LayerRef (*kMake)(Size, const Options&)>
  static LayerRef FromConfig(ConfigReader& reader) {
    Options options;
    options.name = ReadName(reader);
    Size size = 2;
    Read(reader, "pool_size", size);
    reader.ReadBy("strides", [&](const ConfigValue& value) { options.strides = SizeFromFile<Size>(value); });
    reader.Read("padding", options.padding);
    reader.OnlyDefault("data_format", "channels_last");
    return kMake(size, options);
  }

 private:
  const PoolOp op_;
  const Size size_, strides_;
  const std::string padding_;
  ops::PoolOptions options_;
};
using Pooling1DLayer = PoolingLayer<Pooling1DOptions>;
using Pooling2DLayer = PoolingLayer<Pooling2DOptions>;

// Reduces all axes between the batch and the last one.
class GlobalPoolingLayer final : public Layer {
 public:
  using ReduceOp = Output (*)(Output, const ops::IntList&, bool, const NodeName&);
  GlobalPoolingLayer(const char* class_name, ReduceOp op, int dimensions, bool keepdims, const std::string& name)
      : Layer(class_name, name),
        op_(op),
        dimensions_(dimensions),
        reads_mask_(class_name == std::string("GlobalAveragePooling1D")),
        keepdims_(keepdims) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputRank(OnlyInput(inputs), dimensions_ + 2,
                   dimensions_ == 2 ? "[batch, rows, columns, channels]" : "[batch, steps, features]");
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const ops::IntList axes = dimensions_ == 2 ? ops::IntList{1, 2} : ops::IntList{1};
    const Output x = ctx.Computed(inputs[0]);
    const Output mask = reads_mask_ ? ctx.mask(0) : Output();
    return {mask.valid() ? MeanOfSteps(x, mask) : op_(x, axes, keepdims_, class_name())};
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
  // Returns the mean of the steps that count, or 0 if none counts. Its gradient is 0 then, too.
  Output MeanOfSteps(Output x, Output mask) const {
    if (mask.shape().rank() != 2) {
      throw InvalidArgumentError(StrCat("[keras/pooling] expected a mask [batch, steps]; got shape ", mask.shape()));
    }
    const Output steps = ops::ExpandDims(mask, 2);
    const Output count = ops::Sum(ops::Cast(steps, x.dtype()), {1}, keepdims_);
    return ops::Div(ops::Sum(ops::SelectV2(steps, x, 0), {1}, keepdims_), ops::Maximum(count, 1));
  }

  const ReduceOp op_;
  const int dimensions_;
  const bool reads_mask_;
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

LayerRef MaxPooling1D(int64_t pool_size, const Pooling1DOptions& options) {
  return MakeLayer<Pooling1DLayer>("MaxPooling1D", &ops::MaxPool, pool_size, options);
}
LayerRef AveragePooling1D(int64_t pool_size, const Pooling1DOptions& options) {
  return MakeLayer<Pooling1DLayer>("AveragePooling1D", &ops::AvgPool, pool_size, options);
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
LayerRef GlobalMaxPooling1D(const GlobalPooling1DOptions& options) {
  return MakeLayer<GlobalPoolingLayer>("GlobalMaxPooling1D", kMax, 1, options.keepdims, options.name);
}

std::vector<LayerMaker> PoolingLayerMakers() {
  return {{"MaxPooling1D", Pooling1DLayer::FromConfig<MaxPooling1D>},
          {"AveragePooling1D", Pooling1DLayer::FromConfig<AveragePooling1D>},
          {"MaxPooling2D", Pooling2DLayer::FromConfig<MaxPooling2D>},
          {"AveragePooling2D", Pooling2DLayer::FromConfig<AveragePooling2D>},
          {"GlobalAveragePooling2D", GlobalPoolingLayer::FromConfig<GlobalPooling2DOptions, GlobalAveragePooling2D>},
          {"GlobalMaxPooling2D", GlobalPoolingLayer::FromConfig<GlobalPooling2DOptions, GlobalMaxPooling2D>},
          {"GlobalAveragePooling1D", GlobalPoolingLayer::FromConfig<GlobalPooling1DOptions, GlobalAveragePooling1D>},
          {"GlobalMaxPooling1D", GlobalPoolingLayer::FromConfig<GlobalPooling1DOptions, GlobalMaxPooling1D>}};
}

}  // namespace cohort::keras
