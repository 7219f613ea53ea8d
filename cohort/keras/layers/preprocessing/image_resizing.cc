// Resizing, CenterCrop and RandomCrop of image_preprocessing.h, and the base of its layers.
#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/preprocessing/image_layer.h"
#include "cohort/keras/layers/preprocessing/image_preprocessing.h"
#include "cohort/keras/string_names.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/image.h"
#include "cohort/ops/random.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {

std::vector<WeightSpec> ImageLayer::Build(const std::vector<LayerInput>& inputs) const {
  CheckInputRank(OnlyInput(inputs), 4, "[batch, rows, columns, channels]");
  for (const int axis : {1, 2, 3}) KnownDim(inputs[0], axis);
  return {};
}

void ImageLayer::Refuse(const std::string& expected, const std::string& got) const {
  throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name()), "] expected ", expected, "; got ", got));
}

void ImageLayer::CheckSize(int64_t height, int64_t width) const {
  if (height < 1 || width < 1) Refuse("a height and a width of at least 1", StrCat(height, " and ", width));
}

std::string ReadImageLayer(ConfigReader& reader) {
  reader.OnlyDefault("data_format", "channels_last");
  reader.OnlyDefault("bounding_box_format", nullptr);
  return ReadName(reader);
}

ConfigValue SeedInFile(int64_t seed) { return seed == 0 ? ConfigValue() : ConfigValue(seed); }

namespace {

// Rows and columns of an image or of a part of it.
struct Extent {
  int64_t rows, columns;
  friend bool operator==(const Extent&, const Extent&) = default;
};

Extent ExtentOf(const Output& images) { return {images.shape().dim(1), images.shape().dim(2)}; }

// Returns the part of `size` around the middle. What is left over on one side only is below or on the right.
Output Middle(const Output& images, const Extent& size) {
  const Extent all = ExtentOf(images);
  if (all == size) return images;
  return ops::Slice(images, {0, (all.rows - size.rows) / 2, (all.columns - size.columns) / 2, 0},
                    {-1, size.rows, size.columns, -1});
}

// Returns how many columns `rows` rows have in the proportions of `of` (or rows for columns), rounded down. Real is the
// type in which Keras computes it.
template <typename Real>
int64_t InProportion(int64_t rows, int64_t to, int64_t of) {
  return static_cast<int64_t>(static_cast<Real>(rows * to) / static_cast<Real>(of));
}

// Returns the largest part of `all` that has the proportions of `like`.
template <typename Real>
Extent PartLike(const Extent& all, const Extent& like) {
  return {std::max<int64_t>(1, std::min(all.rows, InProportion<Real>(all.columns, like.rows, like.columns))),
          std::max<int64_t>(1, std::min(all.columns, InProportion<Real>(all.rows, like.columns, like.rows)))};
}

// Adds the same number of rows above and below, or of columns on the left and on the right, so that the images have
// about the proportions of `like`.
Output PaddedLike(const Output& images, const Extent& like, double fill) {
  const Extent all = ExtentOf(images);
  const int64_t rows = std::max(all.rows, InProportion<float>(all.columns, like.rows, like.columns));
  const int64_t columns = std::max(all.columns, InProportion<float>(all.rows, like.columns, like.rows));
  const int64_t above = (rows - all.rows) / 2, left = (columns - all.columns) / 2;
  if (above == 0 && left == 0) return images;
  return ops::Pad(images, {{0, 0}, {above, above}, {left, left}, {0, 0}}, fill);
}

Output Resized(CallContext& ctx, const Output& images, const Extent& size, bool nearest = false) {
  if (ExtentOf(images) == size) return images;
  const ops::ResizeOptions options = {.half_pixel_centers = true};
  if (nearest) return ops::ResizeNearestNeighbor(images, {size.rows, size.columns}, options);
  return ctx.Computed(ops::ResizeBilinear(images, {size.rows, size.columns}, options));
}

class ResizingLayer final : public ImageLayer {
 public:
  ResizingLayer(int64_t height, int64_t width, const ResizingOptions& options)
      : ImageLayer("Resizing", options.name), size_{height, width}, options_(options) {
    CheckSize(height, width);
    if (options.interpolation != "bilinear" && options.interpolation != "nearest") {
      Refuse("the interpolation 'bilinear' or 'nearest'", StrCat("'", options.interpolation, "'"));
    }
    if (options.crop_to_aspect_ratio && options.pad_to_aspect_ratio) {
      Refuse("at most one of crop_to_aspect_ratio and pad_to_aspect_ratio", "both");
    }
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    Output x = ctx.Computed(inputs.at(0));
    if (options_.crop_to_aspect_ratio) x = Middle(x, PartLike<float>(ExtentOf(x), size_));
    if (options_.pad_to_aspect_ratio) x = PaddedLike(x, size_, options_.fill_value);
    return {Resized(ctx, x, size_, options_.interpolation == "nearest")};
  }
  ConfigValue::Object Config() const override {
    return {{"height", size_.rows},
            {"width", size_.columns},
            {"interpolation", options_.interpolation},
            {"crop_to_aspect_ratio", options_.crop_to_aspect_ratio},
            {"pad_to_aspect_ratio", options_.pad_to_aspect_ratio},
            {"fill_mode", "constant"},
            {"fill_value", options_.fill_value},
            {"antialias", false},
            {"data_format", "channels_last"}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    ResizingOptions options = {.name = ReadImageLayer(reader)};
    reader.Read("interpolation", options.interpolation);
    reader.Read("crop_to_aspect_ratio", options.crop_to_aspect_ratio);
    reader.Read("pad_to_aspect_ratio", options.pad_to_aspect_ratio);
    reader.Read("fill_value", options.fill_value);
    reader.OnlyDefault("fill_mode", "constant");
    reader.OnlyDefault("antialias", false);
    return Resizing(reader.Required("height").AsInt(), reader.Required("width").AsInt(), options);
  }

 private:
  const Extent size_;
  const ResizingOptions options_;
};

class CenterCropLayer final : public ImageLayer {
 public:
  CenterCropLayer(int64_t height, int64_t width, const LayerOptions& options)
      : ImageLayer("CenterCrop", options.name), size_{height, width} {
    CheckSize(height, width);
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output x = ctx.Computed(inputs.at(0));
    const Extent all = ExtentOf(x);
    if (all.rows >= size_.rows && all.columns >= size_.columns) return {Middle(x, size_)};
    return {Resized(ctx, Middle(x, PartLike<double>(all, size_)), size_)};
  }
  ConfigValue::Object Config() const override {
    return {{"height", size_.rows}, {"width", size_.columns}, {"data_format", "channels_last"}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    const std::string name = ReadImageLayer(reader);
    return CenterCrop(reader.Required("height").AsInt(), reader.Required("width").AsInt(), {.name = name});
  }

 private:
  const Extent size_;
};

class RandomCropLayer final : public ImageLayer {
 public:
  RandomCropLayer(int64_t height, int64_t width, const RandomImageOptions& options)
      : ImageLayer("RandomCrop", options.name), size_{height, width}, seed_(options.seed) {
    CheckSize(height, width);
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output x = ctx.Computed(inputs.at(0));
    const Extent all = ExtentOf(x);
    if (!ctx.training() || all.rows <= size_.rows || all.columns <= size_.columns) {
      return {Resized(ctx, Middle(x, PartLike<double>(all, size_)), size_)};
    }
    const Output places = ops::StatelessRandomUniform(ops::Const(ctx.graph(), std::vector<int32_t>{2}),
                                                      ctx.StepSeed(seed_), DType::kFloat32);
    const Output rows = ops::Gather(x, Numbers(places, 0, all.rows, size_.rows), 1);
    return {ops::Gather(rows, Numbers(places, 1, all.columns, size_.columns), 2)};
  }
  ConfigValue::Object Config() const override {
    return {{"height", size_.rows},
            {"width", size_.columns},
            {"seed", SeedInFile(seed_)},
            {"data_format", "channels_last"}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    RandomImageOptions options = {.name = ReadImageLayer(reader)};
    options.seed = ReadSeed(reader);
    return RandomCrop(reader.Required("height").AsInt(), reader.Required("width").AsInt(), options);
  }

 private:
  // Returns `count` numbers in a row below `all`, int32. The first is chosen by number `i` of `places`, which is in [0,
  // 1).
  static Output Numbers(const Output& places, int64_t i, int64_t all, int64_t count) {
    std::vector<int32_t> from_zero(static_cast<size_t>(count));
    for (size_t k = 0; k < from_zero.size(); ++k) from_zero[k] = static_cast<int32_t>(k);
    const Output first = ops::Mul(ops::Slice(places, {i}, {1}), static_cast<double>(all - count + 1));
    return ops::Add(ops::Cast(first, DType::kInt32), ops::Const(places.graph(), from_zero));
  }

  const Extent size_;
  const int64_t seed_;
};

}  // namespace

LayerRef Resizing(int64_t height, int64_t width, const ResizingOptions& options) {
  return MakeLayer<ResizingLayer>(height, width, options).WithInputShape(options.input_shape);
}
LayerRef CenterCrop(int64_t height, int64_t width, const LayerOptions& options) {
  return MakeLayer<CenterCropLayer>(height, width, options).WithInputShape(options.input_shape);
}
LayerRef RandomCrop(int64_t height, int64_t width, const RandomImageOptions& options) {
  return MakeLayer<RandomCropLayer>(height, width, options).WithInputShape(options.input_shape);
}

std::vector<LayerMaker> ImageResizingLayerMakers() {
  return {{"Resizing", ResizingLayer::FromConfig},
          {"CenterCrop", CenterCropLayer::FromConfig},
          {"RandomCrop", RandomCropLayer::FromConfig}};
}

}  // namespace cohort::keras
