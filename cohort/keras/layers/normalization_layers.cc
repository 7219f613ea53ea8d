// BatchNormalization and LayerNormalization. In training, batch normalization computes the moments of the batch, over
// all replicas if it is synchronized, and adds the updates of its moving averages. Otherwise it uses the moving
// averages.
#include "cohort/keras/layers/normalization_layers.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/reduction.h"
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

// Returns the options that both layers have, then `more`.
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
    const Output y = Normalized(ctx, x, channels);
    return {shape.rank() == 4 ? y : ops::Reshape(y, ReshapeDims(shape))};
  }

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
  Output Normalized(CallContext& ctx, Output x, int64_t channels) const {
    const Output gamma = GivenOr(ctx, options_.scale, "gamma", 1, channels);
    const Output beta = GivenOr(ctx, options_.center, "beta", 0, channels);
    const Output moving_mean = ctx.value("moving_mean");
    const Output moving_variance = ctx.value("moving_variance");
    ops::BatchNormOptions norm;
    norm.epsilon = static_cast<float>(options_.epsilon);
    norm.is_training = ctx.training() && ctx.trainable();
    if (!norm.is_training) return ops::FusedBatchNorm(x, gamma, beta, moving_mean, moving_variance, norm).y;
    if (options_.synchronized) {
      const Moments moments = MomentsOfAllReplicas(ctx, x, channels);
      Move(ctx, moments);
      norm.is_training = false;
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

  ConfigValue::Object Config() const override { return NormalizationConfig(options_, {{"rms_scaling", false}}); }
  static LayerRef FromConfig(ConfigReader& reader) {
    const auto options = ReadNormalization<LayerNormalizationOptions>(reader);
    reader.OnlyDefault("rms_scaling", false);
    return LayerNormalization(options);
  }

 private:
  const LayerNormalizationOptions options_;
};

}  // namespace

LayerRef BatchNormalization(const BatchNormalizationOptions& options) {
  return MakeLayer<BatchNormalizationLayer>(options);
}
LayerRef LayerNormalization(const LayerNormalizationOptions& options) {
  return MakeLayer<LayerNormalizationLayer>(options);
}

std::vector<LayerMaker> NormalizationLayerMakers() {
  return {{"BatchNormalization", BatchNormalizationLayer::FromConfig},
          {"LayerNormalization", LayerNormalizationLayer::FromConfig}};
}

}  // namespace cohort::keras
