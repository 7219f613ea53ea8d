// Layers of core_layers.h that change each element by a formula: ReLU, LeakyReLU, PReLU, ELU, Softmax and
// Rescaling.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/select.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

class ReLULayer final : public Layer {
 public:
  explicit ReLULayer(const ReLUOptions& options) : Layer("ReLU", options.name), options_(options) {
    if (!(options.max_value.value_or(0) >= 0 && options.negative_slope >= 0 && options.threshold >= 0)) {
      throw InvalidArgumentError(
          StrCat("[keras/relu] expected a max_value, negative_slope and threshold of at least 0; got ",
                 options.max_value ? StrCat(*options.max_value) : std::string("none"), ", ", options.negative_slope,
                 " and ", options.threshold));
    }
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output x = ctx.Computed(inputs.at(0));
    const auto number = [&x](double value) { return ops::ScalarLike(x, value); };
    const double threshold = options_.threshold;
    if (options_.negative_slope != 0 && !options_.max_value && threshold == 0) {
      return {ops::LeakyRelu(x, static_cast<float>(options_.negative_slope))};
    }
    Output y = threshold == 0 ? ops::Relu(x) : ops::SelectV2(ops::Greater(x, number(threshold)), x, number(0));
    if (options_.max_value) y = ops::Minimum(y, number(*options_.max_value));
    if (options_.negative_slope == 0) return {y};
    const Output below = ops::Relu(ops::Sub(number(threshold), x));
    return {ops::Sub(y, ops::Mul(below, number(options_.negative_slope)))};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override {
    return {{"max_value", options_.max_value},
            {"negative_slope", options_.negative_slope},
            {"threshold", options_.threshold}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    ReLUOptions options = {.name = ReadName(reader)};
    reader.Read("max_value", options.max_value);
    reader.Read("negative_slope", options.negative_slope);
    reader.Read("threshold", options.threshold);
    return ReLU(options);
  }

 private:
  const ReLUOptions options_;
};

class LeakyReLULayer final : public Layer {
 public:
  explicit LeakyReLULayer(const LeakyReLUOptions& options)
      : Layer("LeakyReLU", options.name), slope_(options.negative_slope) {
    if (slope_ >= 0) return;
    throw InvalidArgumentError(StrCat("[keras/leaky_relu] expected a negative_slope of at least 0; got ", slope_));
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {ops::LeakyRelu(ctx.Computed(inputs.at(0)), static_cast<float>(slope_))};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override { return {{"negative_slope", slope_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    LeakyReLUOptions options = {.name = ReadName(reader)};
    reader.Read("negative_slope", options.negative_slope);
    return LeakyReLU(options);
  }

 private:
  const double slope_;
};

class PReLULayer final : public Layer {
 public:
  explicit PReLULayer(const PReLUOptions& options)
      : Layer("PReLU", options.name, options.trainable), options_(options) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const LayerInput& input = OnlyInput(inputs);
    std::vector<int64_t> dims(static_cast<size_t>(std::max(input.shape.rank(), 1)), 1);
    for (const int64_t axis : options_.shared_axes) {
      if (axis > 0 && axis < input.shape.rank()) continue;
      throw InvalidArgumentError(StrCat("[keras/p_re_lu] expected shared axes from 1 to ", input.shape.rank() - 1,
                                        " for an input ", input.shape, "; got ", axis));
    }
    for (int i = 1; i < input.shape.rank(); ++i) {
      const auto& shared = options_.shared_axes;
      const bool is_shared = std::find(shared.begin(), shared.end(), i) != shared.end();
      if (!is_shared) dims[static_cast<size_t>(i)] = KnownDim(input, i);
    }
    return {{.name = "alpha",
             .shape = Shape(std::vector<int64_t>(dims.begin() + 1, dims.end())),
             .initializer = options_.alpha_initializer,
             .regularizer = options_.alpha_regularizer}};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output x = ctx.Computed(inputs[0]);
    return {ops::Sub(ops::Relu(x), ops::Mul(ctx.weight("alpha"), ops::Relu(ops::Neg(x))))};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override {
    const auto& shared = options_.shared_axes;
    return {{"alpha_initializer", options_.alpha_initializer.Serialized()},
            {"alpha_regularizer", options_.alpha_regularizer.Serialized()},
            {"alpha_constraint", nullptr},
            {"shared_axes", shared.empty() ? ConfigValue() : ConfigValue::List(shared.begin(), shared.end())}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    PReLUOptions options;
    ReadWeighted(reader, options);
    reader.OnlyDefault("alpha_constraint", nullptr);
    Read(reader, "alpha_initializer", options.alpha_initializer);
    Read(reader, "alpha_regularizer", options.alpha_regularizer);
    reader.ReadBy("shared_axes", [&](const ConfigValue& value) {
      for (const ConfigValue& axis : value.AsList()) options.shared_axes.push_back(axis.AsInt());
    });
    return PReLU(options);
  }

 private:
  const PReLUOptions options_;
};

class ELULayer final : public Layer {
 public:
  explicit ELULayer(const ELUOptions& options) : Layer("ELU", options.name), alpha_(options.alpha) {}
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output x = ctx.Computed(inputs.at(0));
    if (alpha_ == 1) return {ops::Elu(x)};
    return {ops::Add(ops::Relu(x), ops::Mul(ops::Minimum(ops::Elu(x), 0), alpha_))};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override { return {{"alpha", alpha_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    ELUOptions options = {.name = ReadName(reader)};
    reader.Read("alpha", options.alpha);
    return ELU(options);
  }

 private:
  const double alpha_;
};

class SoftmaxLayer final : public Layer {
 public:
  explicit SoftmaxLayer(const SoftmaxOptions& options) : Layer("Softmax", options.name), axis_(options.axis) {}
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output mask = ctx.mask(0);
    if (!mask.valid()) return {Softmaxed(inputs.at(0))};
    if (mask.shape().rank() != inputs.at(0).shape().rank()) {
      throw InvalidArgumentError(StrCat("[keras/softmax] expected a mask of the rank of the input ", inputs[0].shape(),
                                        "; got a mask ", mask.shape(),
                                        "; an activation 'softmax' of the layer before needs no mask"));
    }
    return {ops::SelectV2(mask, Softmaxed(ops::SelectV2(mask, inputs[0], -1e9)), 0)};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override { return {{"axis", axis_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    SoftmaxOptions options = {.name = ReadName(reader)};
    reader.Read("axis", options.axis);
    return Softmax(options);
  }

 private:
  Output Softmaxed(Output x) const {
    static const ActivationFunction softmax("softmax");
    const int rank = x.shape().rank();
    const int axis = axis_ < 0 ? rank + axis_ : axis_;
    if (axis < 0 || axis >= rank) {
      throw InvalidArgumentError(
          StrCat("[keras/softmax] expected an input with axis ", axis_, "; got shape ", x.shape()));
    }
    if (axis == rank - 1) return softmax(x);
    // The op works on the last axis. This permutation is its own inverse.
    std::vector<int64_t> swapped;
    for (int i = 0; i < rank; ++i) swapped.push_back(i == axis ? rank - 1 : i == rank - 1 ? axis : i);
    return ops::Transpose(softmax(ops::Transpose(x, swapped)), swapped);
  }

  const int axis_;
};

class RescalingLayer final : public Layer {
 public:
  RescalingLayer(const NumberOrList& scale, const NumberOrList& offset, const std::string& name)
      : Layer("Rescaling", name), scale_(scale), offset_(offset) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    for (const NumberOrList* numbers : {&scale_, &offset_}) {
      if (!numbers->is_list()) continue;
      const int64_t channels = KnownDim(OnlyInput(inputs), -1);
      if (static_cast<int64_t>(numbers->values().size()) == channels) continue;
      throw InvalidArgumentError(StrCat("[keras/rescaling] expected one number for each of the ", channels,
                                        " channels of the input ", inputs[0].shape, "; got ", numbers->values().size(),
                                        " numbers"));
    }
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output input = inputs.at(0);
    const Output x = ctx.Computed(IsFloating(input.dtype()) ? input : ops::Cast(input, DType::kFloat32));
    return {ops::Add(ops::Mul(x, Value(x, scale_)), Value(x, offset_))};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override { return {{"scale", InFile(scale_)}, {"offset", InFile(offset_)}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    NumberOrList offset = 0.0;
    reader.ReadBy("offset", [&](const ConfigValue& value) { offset = FromFile(value); });
    return Rescaling(FromFile(reader.Required("scale")), {.offset = offset, .name = ReadName(reader)});
  }

 private:
  static Output Value(Output like, const NumberOrList& numbers) {
    if (!numbers.is_list()) return ops::ScalarLike(like, numbers.values()[0]);
    const std::vector<float> floats(numbers.values().begin(), numbers.values().end());
    return ops::Cast(ops::Const(like.graph(), floats), like.dtype());
  }
  static ConfigValue InFile(const NumberOrList& numbers) {
    if (!numbers.is_list()) return numbers.values()[0];
    return ConfigValue::List(numbers.values().begin(), numbers.values().end());
  }
  static NumberOrList FromFile(const ConfigValue& value) {
    if (!value.is_list()) return value.AsDouble();
    std::vector<double> values;
    for (const ConfigValue& number : value.AsList()) values.push_back(number.AsDouble());
    return values;
  }

  const NumberOrList scale_, offset_;
};

}  // namespace

LayerRef ReLU(const ReLUOptions& options) { return MakeLayer<ReLULayer>(options); }
LayerRef LeakyReLU(const LeakyReLUOptions& options) { return MakeLayer<LeakyReLULayer>(options); }
LayerRef PReLU(const PReLUOptions& options) { return MakeLayer<PReLULayer>(options); }
LayerRef ELU(const ELUOptions& options) { return MakeLayer<ELULayer>(options); }
LayerRef Softmax(const SoftmaxOptions& options) { return MakeLayer<SoftmaxLayer>(options); }
LayerRef Rescaling(const NumberOrList& scale, const RescalingOptions& options) {
  return MakeLayer<RescalingLayer>(scale, options.offset, options.name).WithInputShape(options.input_shape);
}

std::vector<LayerMaker> ActivationLayerMakers() {
  return {{"ReLU", ReLULayer::FromConfig},       {"LeakyReLU", LeakyReLULayer::FromConfig},
          {"PReLU", PReLULayer::FromConfig},     {"ELU", ELULayer::FromConfig},
          {"Softmax", SoftmaxLayer::FromConfig}, {"Rescaling", RescalingLayer::FromConfig}};
}

}  // namespace cohort::keras
