// The layers of image_preprocessing.h that change images at random and keep their sizes. Each draws its numbers in
// training from the seed of the step, so that a continued training draws the same ones.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/preprocessing/image_layer.h"
#include "cohort/keras/layers/preprocessing/image_preprocessing.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/image.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/random.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

struct Range {
  double low, high;
};

// Returns one number for each image, float32 [batch, 1, 1, 1].
Output Drawn(CallContext& ctx, const Output& images, const Range& range, int64_t seed) {
  const Output one = ops::Slice(images, {0, 0, 0, 0}, {-1, 1, 1, 1});
  const Output parts = ops::StatelessRandomUniform(ops::ShapeOf(one), ctx.StepSeed(seed), DType::kFloat32);
  return ops::Add(ops::Mul(parts, range.high - range.low), range.low);
}

ConfigValue InFile(const FactorRange& factor) {
  if (factor.is_number()) return factor.first();
  return ConfigValue::List{factor.first(), factor.second()};
}
ConfigValue InFile(const Range& range) { return ConfigValue::List{range.low, range.high}; }

FactorRange FactorOf(const ConfigValue& value) {
  if (!value.is_list()) return value.AsDouble();
  const ConfigValue::List& ends = value.AsList();
  if (ends.size() != 2) throw InvalidArgumentError(StrCat("expected a factor of two numbers; got ", value.ToJson()));
  return FactorRange(ends[0].AsDouble(), ends[1].AsDouble());
}

class RandomImageLayer : public ImageLayer {
 public:
  // Outside of training, returns the images.
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const final {
    const Output x = ctx.Computed(inputs.at(0));
    return {ctx.training() ? Changed(ctx, x) : x};
  }

 protected:
  using ImageLayer::ImageLayer;
  // Returns what becomes of the images, of the dtype of the computation, in training.
  virtual Output Changed(CallContext& ctx, const Output& images) const = 0;

  // Returns the range that `factor` means. Throws InvalidArgumentError for a number outside of [low, high], and for
  // `low` itself if `above_low`.
  Range RangeOf(const char* name, const FactorRange& factor, double low, double high, bool above_low = false) const {
    for (const double number : {factor.first(), factor.second()}) {
      if (number <= high && (above_low ? number > low : number >= low)) continue;
      Refuse(StrCat("a ", name, " in ", above_low ? "(" : "[", low, ", ", high, "]"), StrCat(number));
    }
    if (factor.is_number()) return {std::max(low, -std::abs(factor.first())), std::abs(factor.first())};
    return {std::min(factor.first(), factor.second()), std::max(factor.first(), factor.second())};
  }
};

class RandomFlipLayer final : public RandomImageLayer {
 public:
  RandomFlipLayer(const std::string& mode, const RandomImageOptions& options)
      : RandomImageLayer("RandomFlip", options.name), mode_(mode), seed_(options.seed) {
    if (mode != "horizontal" && mode != "vertical" && mode != "horizontal_and_vertical") {
      Refuse("the mode 'horizontal', 'vertical' or 'horizontal_and_vertical'", StrCat("'", mode, "'"));
    }
  }
  ConfigValue::Object Config() const override {
    return {{"seed", SeedInFile(seed_)}, {"mode", mode_}, {"data_format", "channels_last"}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    RandomImageOptions options = {.name = ReadImageLayer(reader)};
    options.seed = ReadSeed(reader);
    std::string mode = "horizontal_and_vertical";
    reader.Read("mode", mode);
    return RandomFlip(mode, options);
  }

 private:
  Output Changed(CallContext& ctx, const Output& images) const override {
    std::vector<int64_t> axes;
    if (mode_ != "horizontal") axes.push_back(1);
    if (mode_ != "vertical") axes.push_back(2);
    const Output flips = ops::LessEqual(Drawn(ctx, images, {0, 1}, seed_), 0.5);
    return ops::SelectV2(flips, ops::Reverse(images, axes), images);
  }

  const std::string mode_;
  const int64_t seed_;
};

// RandomContrast and RandomBrightness.
class RandomColorLayer : public RandomImageLayer {
 public:
  ConfigValue::Object Config() const override {
    return {{"factor", InFile(factor_)},
            {"value_range", ConfigValue::List{options_.value_range[0], options_.value_range[1]}},
            {"seed", SeedInFile(options_.seed)},
            {"data_format", "channels_last"}};
  }
  template <LayerRef (*kMake)(const FactorRange&, const RandomColorOptions&)>
  static LayerRef FromConfig(ConfigReader& reader) {
    RandomColorOptions options = {.name = ReadImageLayer(reader)};
    options.seed = ReadSeed(reader);
    reader.ReadBy("value_range", [&](const ConfigValue& value) {
      const FactorRange range = FactorOf(value);
      options.value_range = {range.first(), range.second()};
    });
    return kMake(FactorOf(reader.Required("factor")), options);
  }

 protected:
  // `lowest` is the lowest factor.
  RandomColorLayer(const char* class_name, const FactorRange& factor, double lowest, const RandomColorOptions& options)
      : RandomImageLayer(class_name, options.name), factor_(RangeOf("factor", factor, lowest, 1)), options_(options) {
    if (!(options.value_range[0] <= options.value_range[1])) {
      Refuse("a value_range {low, high}", StrCat(options.value_range[0], ", ", options.value_range[1]));
    }
  }
  Output Clipped(const Output& x) const {
    return ops::ClipByValue(x, options_.value_range[0], options_.value_range[1]);
  }
  const Range& factor() const { return factor_; }
  const RandomColorOptions& options() const { return options_; }

 private:
  const Range factor_;
  const RandomColorOptions options_;
};

class RandomContrastLayer final : public RandomColorLayer {
 public:
  RandomContrastLayer(const FactorRange& factor, const RandomColorOptions& options)
      : RandomColorLayer("RandomContrast", factor, 0, options) {}

 private:
  Output Changed(CallContext& ctx, const Output& images) const override {
    const Output by = Drawn(ctx, images, {1 - factor().low, 1 + factor().high}, options().seed);
    const Output mean = ops::Mean(images, {1, 2}, true);
    return Clipped(ops::Add(ops::Mul(ops::Sub(images, mean), ctx.Computed(by)), mean));
  }
};

class RandomBrightnessLayer final : public RandomColorLayer {
 public:
  RandomBrightnessLayer(const FactorRange& factor, const RandomColorOptions& options)
      : RandomColorLayer("RandomBrightness", factor, -1, options) {}

 private:
  Output Changed(CallContext& ctx, const Output& images) const override {
    const double width = options().value_range[1] - options().value_range[0];
    const Output more = ops::Mul(Drawn(ctx, images, factor(), options().seed), width);
    return Clipped(ops::Add(images, ctx.Computed(more)));
  }
};

// RandomTranslation, RandomRotation and RandomZoom.
class RandomTransformLayer : public RandomImageLayer {
 public:
  ConfigValue::Object Config() const override {
    ConfigValue::Object config = Factors();
    config.insert(config.end(), {{"fill_mode", options_.fill_mode},
                                 {"interpolation", options_.interpolation},
                                 {"seed", SeedInFile(options_.seed)},
                                 {"fill_value", options_.fill_value},
                                 {"data_format", "channels_last"}});
    return config;
  }

 protected:
  RandomTransformLayer(const char* class_name, const RandomTransformOptions& options)
      : RandomImageLayer(class_name, options.name), options_(options) {
    const std::vector<std::string> modes = {"reflect", "constant", "wrap", "nearest"};
    if (std::find(modes.begin(), modes.end(), options.fill_mode) == modes.end()) {
      Refuse("the fill_mode 'reflect', 'constant', 'wrap' or 'nearest'", StrCat("'", options.fill_mode, "'"));
    }
    if (options.interpolation != "bilinear" && options.interpolation != "nearest") {
      Refuse("the interpolation 'bilinear' or 'nearest'", StrCat("'", options.interpolation, "'"));
    }
  }
  static RandomTransformOptions ReadOptions(ConfigReader& reader) {
    RandomTransformOptions options = {.name = ReadImageLayer(reader)};
    reader.Read("fill_mode", options.fill_mode);
    reader.Read("interpolation", options.interpolation);
    reader.Read("fill_value", options.fill_value);
    options.seed = ReadSeed(reader);
    return options;
  }
  // Returns number `i` of the layer's one or two random numbers for each image, float32 [batch, 1].
  Output DrawnColumn(CallContext& ctx, const Output& images, const Range& range, int64_t i) const {
    const auto seed = static_cast<int64_t>(static_cast<uint64_t>(options_.seed) * 2 + static_cast<uint64_t>(i));
    return ops::Reshape(Drawn(ctx, images, range, seed), {-1, 1});
  }
  // Returns the factors as files have them.
  virtual ConfigValue::Object Factors() const = 0;
  // Returns the columns a0, a1, a2, b0, b1, b2 of ops::ImageProjectiveTransformV3, each float32 [batch, 1]. The middle
  // of the images is at (middle_x, middle_y).
  virtual std::vector<Output> Transforms(CallContext& ctx, const Output& images, double middle_x,
                                         double middle_y) const = 0;

 private:
  Output Changed(CallContext& ctx, const Output& images) const final {
    const int64_t rows = images.shape().dim(1), columns = images.shape().dim(2);
    std::vector<Output> all =
        Transforms(ctx, images, static_cast<double>(columns - 1) / 2, static_cast<double>(rows - 1) / 2);
    const Output zero = ops::ZerosLike(all.front());
    all.insert(all.end(), {zero, zero});
    const ops::ProjectiveTransformOptions options = {options_.interpolation == "nearest" ? "NEAREST" : "BILINEAR",
                                                     UpperCase(options_.fill_mode)};
    return ops::ImageProjectiveTransformV3(images, ops::Concat(all, 1), {rows, columns},
                                           static_cast<float>(options_.fill_value), options);
  }

  static std::string UpperCase(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return text;
  }

  const RandomTransformOptions options_;
};

class RandomTranslationLayer final : public RandomTransformLayer {
 public:
  RandomTranslationLayer(const FactorRange& height_factor, const FactorRange& width_factor,
                         const RandomTransformOptions& options)
      : RandomTransformLayer("RandomTranslation", options),
        height_factor_(height_factor),
        width_factor_(width_factor),
        height_(RangeOf("height_factor", height_factor, -1, 1)),
        width_(RangeOf("width_factor", width_factor, -1, 1)) {}
  static LayerRef FromConfig(ConfigReader& reader) {
    const RandomTransformOptions options = ReadOptions(reader);
    return RandomTranslation(FactorOf(reader.Required("height_factor")), FactorOf(reader.Required("width_factor")),
                             options);
  }

 private:
  ConfigValue::Object Factors() const override {
    return {{"height_factor", InFile(height_factor_)}, {"width_factor", InFile(width_factor_)}};
  }
  std::vector<Output> Transforms(CallContext& ctx, const Output& images, double, double) const override {
    const auto rows = static_cast<double>(images.shape().dim(1)), columns = static_cast<double>(images.shape().dim(2));
    const Output down = ops::Mul(DrawnColumn(ctx, images, height_, 0), rows);
    const Output right = ops::Mul(DrawnColumn(ctx, images, width_, 1), columns);
    const Output one = ops::OnesLike(down), zero = ops::ZerosLike(down);
    return {one, zero, ops::Neg(right), zero, one, ops::Neg(down)};
  }

  const FactorRange height_factor_, width_factor_;
  const Range height_, width_;
};

class RandomRotationLayer final : public RandomTransformLayer {
 public:
  RandomRotationLayer(const FactorRange& factor, const RandomTransformOptions& options)
      : RandomTransformLayer("RandomRotation", options), factor_(RangeOf("factor", factor, -1, 1)) {}
  static LayerRef FromConfig(ConfigReader& reader) {
    const RandomTransformOptions options = ReadOptions(reader);
    return RandomRotation(FactorOf(reader.Required("factor")), options);
  }

 private:
  ConfigValue::Object Factors() const override { return {{"factor", InFile(factor_)}}; }
  std::vector<Output> Transforms(CallContext& ctx, const Output& images, double middle_x,
                                 double middle_y) const override {
    const Output degrees = DrawnColumn(ctx, images, {factor_.low * 360, factor_.high * 360}, 0);
    const Output angle = ops::Mul(degrees, std::numbers::pi / 180);
    const Output cos = ops::Cos(angle), sin = ops::Sin(angle);
    // The middle of the image does not move.
    const Output x = ops::Add(ops::Sub(middle_x, ops::Mul(cos, middle_x)), ops::Mul(sin, middle_y));
    const Output y = ops::Sub(ops::Sub(middle_y, ops::Mul(sin, middle_x)), ops::Mul(cos, middle_y));
    return {cos, ops::Neg(sin), x, sin, cos, y};
  }

  const Range factor_;
};

class RandomZoomLayer final : public RandomTransformLayer {
 public:
  RandomZoomLayer(const FactorRange& height_factor, const std::optional<FactorRange>& width_factor,
                  const RandomTransformOptions& options)
      : RandomTransformLayer("RandomZoom", options),
        height_factor_(height_factor),
        width_factor_(width_factor),
        height_(RangeOf("height_factor", height_factor, -1, 1, true)),
        width_(RangeOf("width_factor", width_factor.value_or(height_factor), -1, 1, true)) {}
  static LayerRef FromConfig(ConfigReader& reader) {
    const RandomTransformOptions options = ReadOptions(reader);
    std::optional<FactorRange> width;
    reader.ReadBy("width_factor", [&](const ConfigValue& value) { width = FactorOf(value); });
    return RandomZoom(FactorOf(reader.Required("height_factor")), width, options);
  }

 private:
  ConfigValue::Object Factors() const override {
    return {{"height_factor", InFile(height_factor_)},
            {"width_factor", width_factor_ ? InFile(*width_factor_) : ConfigValue()}};
  }
  std::vector<Output> Transforms(CallContext& ctx, const Output& images, double middle_x,
                                 double middle_y) const override {
    const Output high = DrawnColumn(ctx, images, {1 + height_.low, 1 + height_.high}, 0);
    const Output wide = width_factor_ ? DrawnColumn(ctx, images, {1 + width_.low, 1 + width_.high}, 1) : high;
    const Output zero = ops::ZerosLike(high);
    return {wide, zero, ops::Mul(ops::Sub(1, wide), middle_x), zero, high, ops::Mul(ops::Sub(1, high), middle_y)};
  }

  const FactorRange height_factor_;
  const std::optional<FactorRange> width_factor_;
  const Range height_, width_;
};

}  // namespace

LayerRef RandomFlip(const std::string& mode, const RandomImageOptions& options) {
  return MakeLayer<RandomFlipLayer>(mode, options).WithInputShape(options.input_shape);
}
LayerRef RandomContrast(const FactorRange& factor, const RandomColorOptions& options) {
  return MakeLayer<RandomContrastLayer>(factor, options).WithInputShape(options.input_shape);
}
LayerRef RandomBrightness(const FactorRange& factor, const RandomColorOptions& options) {
  return MakeLayer<RandomBrightnessLayer>(factor, options).WithInputShape(options.input_shape);
}
LayerRef RandomTranslation(const FactorRange& height_factor, const FactorRange& width_factor,
                           const RandomTransformOptions& options) {
  return MakeLayer<RandomTranslationLayer>(height_factor, width_factor, options).WithInputShape(options.input_shape);
}
LayerRef RandomRotation(const FactorRange& factor, const RandomTransformOptions& options) {
  return MakeLayer<RandomRotationLayer>(factor, options).WithInputShape(options.input_shape);
}
LayerRef RandomZoom(const FactorRange& height_factor, const std::optional<FactorRange>& width_factor,
                    const RandomTransformOptions& options) {
  return MakeLayer<RandomZoomLayer>(height_factor, width_factor, options).WithInputShape(options.input_shape);
}

std::vector<LayerMaker> ImageAugmentationLayerMakers() {
  return {{"RandomFlip", RandomFlipLayer::FromConfig},
          {"RandomContrast", RandomColorLayer::FromConfig<RandomContrast>},
          {"RandomBrightness", RandomColorLayer::FromConfig<RandomBrightness>},
          {"RandomTranslation", RandomTranslationLayer::FromConfig},
          {"RandomRotation", RandomRotationLayer::FromConfig},
          {"RandomZoom", RandomZoomLayer::FromConfig}};
}

}  // namespace cohort::keras
