// BatchNormalization, LayerNormalization, GroupNormalization and UnitNormalization. In training, batch normalization
// computes the moments of the batch, over all replicas if it is synchronized, and adds the updates of its moving
// averages. Otherwise it uses the moving averages.
#include "cohort/keras/layers/normalization_layers.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/unit_length.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/select.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

template <typename Options>
std::vector<WeightSpec> ScaleAndCenter(const Options& options, int64_t channels) {
  std::vector<WeightSpec> weights;
  if (options.scale) {
    weights.push_back({.name = "gamma",
                       .shape = Shape{channels},
                       .initializer = options.gamma_initializer,
                       .regularizer = options.gamma_regularizer});
  }
  if (options.center) {
    weights.push_back({.name = "beta",
                       .shape = Shape{channels},
                       .initializer = options.beta_initializer,
                       .regularizer = options.beta_regularizer});
  }
  return weights;
}

// Returns the options that all layers with weights have, then `more`.
template <typename Options>
ConfigValue::Object NormalizationConfig(const Options& options, ConfigValue::Object more) {
  ConfigValue::Object config = {{"axis", -1},
                                {"epsilon", options.epsilon},
                                {"center", options.center},
                                {"scale", options.scale},
                                {"beta_initializer", options.beta_initializer.Serialized()},
                                {"gamma_initializer", options.gamma_initializer.Serialized()},
                                {"beta_regularizer", options.beta_regularizer.Serialized()},
                                {"gamma_regularizer", options.gamma_regularizer.Serialized()},
                                {"beta_constraint", nullptr},
                                {"gamma_constraint", nullptr}};
  for (auto& option : more) config.push_back(std::move(option));
  return config;
}

// Requires: WithLastAxis has made the last axis -1.
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

const LayerInput& CheckedInput(const std::vector<LayerInput>& inputs) {
  const LayerInput& input = OnlyInput(inputs);
  if (input.shape.rank() < 2) {
    throw InvalidArgumentError(
        StrCat("[keras/normalization] expected an input [batch, ..., channels]; got shape ", input.shape));
  }
  return input;
}

// Returns the weight if it is given, and a constant for each channel if not.
Output GivenOr(CallContext& ctx, bool given, const char* name, float otherwise, int64_t channels) {
  if (given) return ctx.variable(name).value();
  return ops::Const(ctx.graph(), std::vector<float>(static_cast<size_t>(channels), otherwise));
}

struct Moments {
  Output mean;
  Output variance;  // divided by the count
};

class BatchNormalizationLayer final : public Layer {
 public:
  explicit BatchNormalizationLayer(const BatchNormalizationOptions& options)
      : Layer("BatchNormalization", options.name, options.trainable), options_(options) {}

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const int64_t channels = KnownDim(CheckedInput(inputs), -1);
    std::vector<WeightSpec> weights = ScaleAndCenter(options_, channels);
    weights.push_back({.name = "moving_mean",
                       .shape = Shape{channels},
                       .initializer = options_.moving_mean_initializer,
                       .trainable = false});
    weights.push_back({.name = "moving_variance",
                       .shape = Shape{channels},
                       .initializer = options_.moving_variance_initializer,
                       .trainable = false});
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Shape shape = inputs[0].shape();
    const int64_t channels = shape.dim(shape.rank() - 1);
    const Output x =
        shape.rank() == 4 ? ctx.Computed(inputs[0]) : ops::Reshape(ctx.Computed(inputs[0]), {-1, 1, 1, channels});
    const Output y = Normalized(ctx, x, MaskOfRows(ctx, shape), channels);
    return {shape.rank() == 4 ? y : ops::Reshape(y, ReshapeDims(shape))};
  }

  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override {
    return NormalizationConfig(options_,
                               {{"momentum", options_.momentum},
                                {"moving_mean_initializer", options_.moving_mean_initializer.Serialized()},
                                {"moving_variance_initializer", options_.moving_variance_initializer.Serialized()},
                                {"synchronized", options_.synchronized}});
  }
  static LayerRef FromConfig(ConfigReader& reader) {
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

 private:
  // Returns the mask as [rows, 1, 1, 1], or as [batch, rows, columns, 1] for images. Returns an Output that is not
  // valid if there is none.
  static Output MaskOfRows(CallContext& ctx, const Shape& shape) {
    const Output mask = ctx.mask(0);
    if (!mask.valid()) return {};
    if (mask.shape().rank() != shape.rank() - 1) {
      throw InvalidArgumentError(StrCat("[keras/batch_normalization] expected a mask of rank ", shape.rank() - 1,
                                        " for the input ", shape, "; got a mask ", mask.shape()));
    }
    return shape.rank() == 4 ? ops::ExpandDims(mask, -1) : ops::Reshape(mask, {-1, 1, 1, 1});
  }

  // If `mask` is valid, only its rows count in the moments of the batch.
  Output Normalized(CallContext& ctx, Output x, Output mask, int64_t channels) const {
    const Output gamma = GivenOr(ctx, options_.scale, "gamma", 1, channels);
    const Output beta = GivenOr(ctx, options_.center, "beta", 0, channels);
    const Output moving_mean = ctx.value("moving_mean");
    const Output moving_variance = ctx.value("moving_variance");
    ops::BatchNormOptions norm;
    norm.epsilon = static_cast<float>(options_.epsilon);
    norm.is_training = ctx.training() && ctx.trainable();
    if (!norm.is_training) return ops::FusedBatchNorm(x, gamma, beta, moving_mean, moving_variance, norm).y;
    if (options_.synchronized || mask.valid()) {
      const Moments moments = mask.valid() ? MaskedMoments(ctx, x, mask) : MomentsOfAllReplicas(ctx, x, channels);
      Move(ctx, moments);
      const Output scale = ops::Mul(gamma, ops::Rsqrt(moments.variance + norm.epsilon));
      const Output wide = x.dtype() == DType::kFloat32 ? x : ops::Cast(x, DType::kFloat32);
      return ctx.Computed(ops::Add(ops::Mul(ops::Sub(wide, moments.mean), scale), beta));
    }
    const ops::BatchNorm batch = ops::FusedBatchNorm(x, gamma, beta, moving_mean, moving_variance, norm);
    // The op's variance is divided by count - 1.
    const Output count = Count(x, channels);
    const Output one = ops::Const(ctx.graph(), 1.0f);
    const Output biased = ops::Mul(batch.variance, ops::Div(ops::Maximum(ops::Sub(count, one), one), count));
    Move(ctx, {batch.mean, biased});
    return batch.y;
  }

  // Elements of one channel, float32.
  static Output Count(Output x, int64_t channels) {
    return ops::Cast(ops::FloorDiv(ops::Size(x), ops::Const(x.graph(), static_cast<int32_t>(channels))),
                     DType::kFloat32);
  }

  static Moments MomentsOfAllReplicas(CallContext& ctx, Output x, int64_t channels) {
    const Output wide = x.dtype() == DType::kFloat32 ? x : ops::Cast(x, DType::kFloat32);
    const Output count = ctx.SumOverReplicas(Count(x, channels));
    const Output mean = ops::Div(ctx.SumOverReplicas(ops::Sum(wide, {0, 1, 2})), count);
    // Squares of differences from the mean of all, so that nothing cancels.
    const Output squares = ops::Sum(ops::SquaredDifference(wide, mean), {0, 1, 2});
    return {mean, ops::Div(ctx.SumOverReplicas(squares), count)};
  }

  // As in Keras, the small number in the divisor keeps the moments finite if no row counts.
  Moments MaskedMoments(CallContext& ctx, Output x, Output mask) const {
    const auto sum = [&](Output values) {
      const Output here = ops::Sum(values, {0, 1, 2});
      return options_.synchronized ? ctx.SumOverReplicas(here) : here;
    };
    const Output wide = x.dtype() == DType::kFloat32 ? x : ops::Cast(x, DType::kFloat32);
    const Output count = ops::Add(sum(ops::Cast(mask, DType::kFloat32)), 1e-7);
    const Output mean = ops::Div(sum(ops::SelectV2(mask, wide, 0)), count);
    return {mean, ops::Div(sum(ops::SelectV2(mask, ops::SquaredDifference(wide, mean), 0)), count)};
  }

  void Move(CallContext& ctx, const Moments& batch) const {
    const auto move = [&](const char* name, Output to) {
      ctx.AddUpdate(name, ctx.value(name) * static_cast<float>(options_.momentum) +
                              ops::StopGradient(to) * static_cast<float>(1 - options_.momentum));
    };
    move("moving_mean", batch.mean);
    move("moving_variance", batch.variance);
  }

  const BatchNormalizationOptions options_;
};

class LayerNormalizationLayer final : public Layer {
 public:
  explicit LayerNormalizationLayer(const LayerNormalizationOptions& options)
      : Layer("LayerNormalization", options.name, options.trainable), options_(options) {}

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    return ScaleAndCenter(options_, KnownDim(CheckedInput(inputs), -1));
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    // The op computes bfloat16 in float32, because it subtracts numbers that are almost equal.
    const bool narrow = inputs[0].dtype() == DType::kBfloat16;
    const Output x = narrow ? inputs[0] : ops::Cast(inputs[0], DType::kFloat32);
    const int64_t channels = x.shape().dim(x.shape().rank() - 1);
    const Output gamma = GivenOr(ctx, options_.scale, "gamma", 1, channels);
    const Output beta = GivenOr(ctx, options_.center, "beta", 0, channels);
    return {ctx.Computed(ops::LayerNorm(x, gamma, beta, static_cast<float>(options_.epsilon)))};
  }

  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override { return NormalizationConfig(options_, {{"rms_scaling", false}}); }
  static LayerRef FromConfig(ConfigReader& reader) {
    const auto options = ReadNormalization<LayerNormalizationOptions>(reader);
    reader.OnlyDefault("rms_scaling", false);
    return LayerNormalization(options);
  }

 private:
  const LayerNormalizationOptions options_;
};

class GroupNormalizationLayer final : public Layer {
 public:
  GroupNormalizationLayer(int64_t groups, const GroupNormalizationOptions& options)
      : Layer("GroupNormalization", options.name, options.trainable), groups_(groups), options_(options) {
    if (groups > 0 || groups == -1) return;
    throw InvalidArgumentError(StrCat("[keras/group_normalization] expected groups > 0, or -1; got ", groups));
  }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const int64_t channels = KnownDim(CheckedInput(inputs), -1);
    ReshapeDims(inputs[0].shape);
    if (groups_ > 0 && channels % groups_ != 0) {
      throw InvalidArgumentError(StrCat("[keras/group_normalization] expected channels that ", groups_,
                                        " groups divide; got shape ", inputs[0].shape));
    }
    return ScaleAndCenter(options_, channels);
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const std::vector<int64_t> dims = ReshapeDims(inputs[0].shape());
    const int64_t channels = dims.back(), groups = groups_ == -1 ? channels : groups_, size = channels / groups;
    int64_t places = 1;
    for (size_t i = 1; i + 1 < dims.size(); ++i) places *= dims[i];
    const Output x = ops::Reshape(ops::Cast(inputs[0], DType::kFloat32), {-1, places, groups, size});
    const Output difference = ops::Sub(x, ops::Mean(x, {1, 3}, true));
    const Output variance = ops::Mean(ops::Square(difference), {1, 3}, true);
    Output factor = ops::Rsqrt(ops::Add(variance, options_.epsilon));
    if (options_.scale) factor = ops::Mul(factor, ops::Reshape(ctx.value("gamma"), {1, 1, groups, size}));
    Output y = ops::Mul(difference, factor);
    if (options_.center) y = ops::Add(y, ops::Reshape(ctx.value("beta"), {1, 1, groups, size}));
    return {ctx.Computed(ops::Reshape(y, dims))};
  }

  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override { return NormalizationConfig(options_, {{"groups", groups_}}); }
  static LayerRef FromConfig(ConfigReader& reader) {
    const auto options = ReadNormalization<GroupNormalizationOptions>(reader);
    int64_t groups = 32;
    reader.Read("groups", groups);
    return GroupNormalization(groups, options);
  }

 private:
  const int64_t groups_;
  const GroupNormalizationOptions options_;
};

class UnitNormalizationLayer final : public Layer {
 public:
  explicit UnitNormalizationLayer(const UnitNormalizationOptions& options)
      : Layer("UnitNormalization", options.name), axis_(options.axis) {
    if (axis_.empty()) throw InvalidArgumentError("[keras/unit_normalization] expected an axis; got none");
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const Shape& shape = OnlyInput(inputs).shape;
    for (const int64_t axis : axis_) {
      if (axis < shape.rank() && axis >= -shape.rank()) continue;
      throw InvalidArgumentError(
          StrCat("[keras/unit_normalization] expected an input with axis ", axis, "; got shape ", shape));
    }
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {UnitLength(ctx.Computed(inputs[0]), axis_, 1e-12)};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override {
    return {{"axis", axis_.size() == 1 ? ConfigValue(axis_[0]) : ConfigValue::List(axis_.begin(), axis_.end())}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    UnitNormalizationOptions options;
    options.name = ReadName(reader);
    reader.ReadBy("axis", [&](const ConfigValue& value) {
      options.axis.clear();
      if (!value.is_list()) options.axis.push_back(value.AsInt());
      if (value.is_list()) {
        for (const ConfigValue& axis : value.AsList()) options.axis.push_back(axis.AsInt());
      }
    });
    return UnitNormalization(options);
  }

 private:
  const std::vector<int64_t> axis_;
};

}  // namespace

LayerRef BatchNormalization(const BatchNormalizationOptions& options) {
  return MakeLayer<BatchNormalizationLayer>(options);
}
LayerRef LayerNormalization(const LayerNormalizationOptions& options) {
  return MakeLayer<LayerNormalizationLayer>(options);
}
LayerRef GroupNormalization(int64_t groups, const GroupNormalizationOptions& options) {
  return MakeLayer<GroupNormalizationLayer>(groups, options);
}
LayerRef UnitNormalization(const UnitNormalizationOptions& options) {
  return MakeLayer<UnitNormalizationLayer>(options);
}

std::vector<LayerMaker> NormalizationLayerMakers() {
  return {{"BatchNormalization", BatchNormalizationLayer::FromConfig},
          {"LayerNormalization", LayerNormalizationLayer::FromConfig},
          {"GroupNormalization", GroupNormalizationLayer::FromConfig},
          {"UnitNormalization", UnitNormalizationLayer::FromConfig}};
}

}  // namespace cohort::keras
