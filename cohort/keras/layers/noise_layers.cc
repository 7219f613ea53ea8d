// The layers of noise_layers.h. Each draws its numbers in training from the seed of the step, so that a continued
// training draws the same ones.
#include "cohort/keras/layers/noise_layers.h"

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/string_names.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/random.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

// Returns x with some elements changed at random. `amount` is the rate or the standard deviation, above 0.
using NoiseFunction = Output (*)(Output x, double amount, Output seed);

// Which elements stay, as bools: each with probability 1 - rate.
Output Kept(Output shape, DType dtype, double rate, Output seed) {
  return ops::GreaterEqual(ops::StatelessRandomUniform(shape, seed, dtype), rate);
}

// One number decides for all elements between the batch and the channels.
Output DropChannels(Output x, double rate, Output seed) {
  const int rank = x.shape().rank();
  std::vector<int64_t> size(static_cast<size_t>(rank), 1);
  size.front() = size.back() = -1;
  const Output one = ops::Slice(x, std::vector<int64_t>(static_cast<size_t>(rank), 0), size);
  const Output keep = Kept(ops::ShapeOf(one), x.dtype(), rate, seed);
  return ops::SelectV2(keep, ops::Mul(x, 1 / (1 - rate)), 0);
}

Output AddNormal(Output x, double stddev, Output seed) {
  return ops::Add(x, ops::Mul(ops::StatelessRandomNormal(ops::ShapeOf(x), seed, x.dtype()), stddev));
}

Output MultiplyNormal(Output x, double rate, Output seed) {
  const Output normal = ops::StatelessRandomNormal(ops::ShapeOf(x), seed, x.dtype());
  return ops::Mul(x, ops::Add(ops::Mul(normal, std::sqrt(rate / (1 - rate))), 1));
}

Output DropToLimit(Output x, double rate, Output seed) {
  constexpr double kLimit = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
  const double scale = 1 / std::sqrt((1 - rate) * (1 + rate * kLimit * kLimit));
  const Output kept = ops::SelectV2(Kept(ops::ShapeOf(x), x.dtype(), rate, seed), x, kLimit);
  return ops::Add(ops::Mul(kept, scale), -scale * kLimit * rate);
}

// What differs between the layers, apart from what they compute.
struct NoiseKind {
  const char* class_name;
  const char* amount = "rate";  // the name of the amount in files
  int rank = 0;                 // of the inputs; 0: any
  bool has_shape = false;       // true: files have the option noise_shape
};

class NoiseLayer final : public Layer {
 public:
  NoiseLayer(const NoiseKind& kind, NoiseFunction function, double amount, const DropoutOptions& options)
      : Layer(kind.class_name, options.name), kind_(kind), function_(function), amount_(amount), seed_(options.seed) {
    const bool is_rate = std::string(kind.amount) == "rate";
    if (amount >= 0 && (is_rate ? amount < 1 : amount <= 1)) return;
    throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name()), "] expected a ", kind.amount, " in [0, 1",
                                      is_rate ? ")" : "]", "; got ", amount));
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const LayerInput& input = OnlyInput(inputs);
    if (kind_.rank != 0) {
      CheckInputRank(input, kind_.rank,
                     kind_.rank == 3 ? "[batch, steps, channels]" : "[batch, rows, columns, channels]");
    }
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    if (!ctx.training() || amount_ == 0) return {inputs[0]};
    return {function_(ctx.Computed(inputs[0]), amount_, ctx.StepSeed(seed_))};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override {
    ConfigValue::Object config = {{kind_.amount, amount_}, {"seed", seed_ == 0 ? ConfigValue() : ConfigValue(seed_)}};
    if (kind_.rank == 4) config.emplace_back("data_format", "channels_last");
    if (kind_.has_shape) config.emplace_back("noise_shape", nullptr);
    return config;
  }
  template <LayerRef (*kMake)(double, const DropoutOptions&)>
  static LayerRef FromConfig(ConfigReader& reader) {
    DropoutOptions options = {.name = ReadName(reader)};
    options.seed = ReadSeed(reader);
    reader.OnlyDefault("data_format", "channels_last");
    reader.OnlyDefault("noise_shape", nullptr);
    return kMake(reader.Required(reader.class_name() == "GaussianNoise" ? "stddev" : "rate").AsDouble(), options);
  }

 private:
  const NoiseKind kind_;
  const NoiseFunction function_;
  const double amount_;
  const int64_t seed_;
};

}  // namespace

LayerRef SpatialDropout1D(double rate, const DropoutOptions& options) {
  return MakeLayer<NoiseLayer>(NoiseKind{.class_name = "SpatialDropout1D", .rank = 3}, DropChannels, rate, options);
}
LayerRef SpatialDropout2D(double rate, const DropoutOptions& options) {
  return MakeLayer<NoiseLayer>(NoiseKind{.class_name = "SpatialDropout2D", .rank = 4}, DropChannels, rate, options);
}
LayerRef GaussianNoise(double stddev, const DropoutOptions& options) {
  return MakeLayer<NoiseLayer>(NoiseKind{.class_name = "GaussianNoise", .amount = "stddev"}, AddNormal, stddev,
                               options);
}
LayerRef GaussianDropout(double rate, const DropoutOptions& options) {
  return MakeLayer<NoiseLayer>(NoiseKind{.class_name = "GaussianDropout"}, MultiplyNormal, rate, options);
}
LayerRef AlphaDropout(double rate, const DropoutOptions& options) {
  return MakeLayer<NoiseLayer>(NoiseKind{.class_name = "AlphaDropout", .has_shape = true}, DropToLimit, rate, options);
}

std::vector<LayerMaker> NoiseLayerMakers() {
  return {{"SpatialDropout1D", NoiseLayer::FromConfig<SpatialDropout1D>},
          {"SpatialDropout2D", NoiseLayer::FromConfig<SpatialDropout2D>},
          {"GaussianNoise", NoiseLayer::FromConfig<GaussianNoise>},
          {"GaussianDropout", NoiseLayer::FromConfig<GaussianDropout>},
          {"AlphaDropout", NoiseLayer::FromConfig<AlphaDropout>}};
}

}  // namespace cohort::keras
