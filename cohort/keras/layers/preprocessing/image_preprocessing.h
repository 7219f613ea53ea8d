// Layers that prepare images [batch, rows, columns, channels] inside a model:
// - Resizing and CenterCrop give images the size that the rest of the model expects;
// - RandomFlip, RandomCrop, RandomTranslation, RandomRotation and RandomZoom move their pixels at random, and
//   RandomContrast and RandomBrightness change their values, so that a model learns what does not matter.
// Rows and columns must be known. Integers become float32. The random layers act in training only; RandomCrop also
// crops outside of training. All but RandomCrop draw new numbers for each image. Rescaling is in core_layers.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

struct COHORT_EXPORT ResizingOptions {
  std::string interpolation = "bilinear";  // or "nearest"
  // True: rows or columns at the borders are removed first, so that the rest has the proportions of the result.
  bool crop_to_aspect_ratio = false;
  // True: rows or columns of fill_value are added at the borders first, equally many on both sides.
  bool pad_to_aspect_ratio = false;
  double fill_value = 0;
  std::string name;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// [batch, rows, columns, channels] becomes [batch, height, width, channels]: pixels are interpolated between the
// centers of pixels of the image, or are the nearest pixel. Throws InvalidArgumentError for sizes below 1, for another
// interpolation, and for both ways to keep the proportions.
COHORT_EXPORT LayerRef Resizing(int64_t height, int64_t width, const ResizingOptions& options = {});

// [batch, rows, columns, channels] becomes [batch, height, width, channels], the middle of the image. An image with
// fewer rows or columns is cropped to the proportions of the result and then resized. Throws InvalidArgumentError for
// sizes below 1.
COHORT_EXPORT LayerRef CenterCrop(int64_t height, int64_t width, const LayerOptions& options = {});

struct COHORT_EXPORT RandomImageOptions {
  int64_t seed = 0;  // even with equal seeds, layers and steps get different numbers (CallContext::StepSeed)
  std::string name;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// [batch, rows, columns, channels] becomes [batch, height, width, channels]. In training, all images of a batch are
// cropped at the same random place. Outside of training, and if the images do not have more rows and more columns than
// the result, images are cropped to the proportions of the result, around their middle, and then resized. (So Keras
// describes the layer. Keras 3.15 returns the images unchanged outside of training, although it gives the result the
// smaller shape; in training it crops images that are too small in one direction at the size of the result, and
// stretches them.) Throws InvalidArgumentError for sizes below 1.
COHORT_EXPORT LayerRef RandomCrop(int64_t height, int64_t width, const RandomImageOptions& options = {});
// In training, turns one half of the images around. `mode` is "horizontal" (left becomes right), "vertical" (top
// becomes bottom) or "horizontal_and_vertical" (both at once). Throws InvalidArgumentError for another mode.
COHORT_EXPORT LayerRef RandomFlip(const std::string& mode = "horizontal_and_vertical",
                                  const RandomImageOptions& options = {});

// A range from which a layer draws a number for each image: 0.2, or {-0.1, 0.3}. What one number means is said at the
// layer.
class COHORT_EXPORT FactorRange {
 public:
  FactorRange(double number) : first_(number), second_(number), is_number_(true) {}
  FactorRange(double first, double second) : first_(first), second_(second) {}
  bool is_number() const { return is_number_; }
  double first() const { return first_; }
  double second() const { return second_; }

 private:
  double first_, second_;
  bool is_number_ = false;
};

struct COHORT_EXPORT RandomColorOptions {
  std::array<double, 2> value_range = {0, 255};  // which values images have; results are clipped to it
  int64_t seed = 0;
  std::string name;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// In training, computes (x - mean) * f + mean, where mean is that of the image's channel and f is drawn from [1 - a, 1
// + b). `factor` is {a, b}, two numbers in [0, 1] of which the lower one counts as a; one number b means {0, b}. Throws
// InvalidArgumentError for other numbers.
COHORT_EXPORT LayerRef RandomContrast(const FactorRange& factor, const RandomColorOptions& options = {});
// In training, computes x + f * (high - low) for the value_range {low, high}, where f is drawn from `factor`, which
// lies in [-1, 1]. One number b means {-b, b}. Throws InvalidArgumentError for other numbers.
COHORT_EXPORT LayerRef RandomBrightness(const FactorRange& factor, const RandomColorOptions& options = {});

struct COHORT_EXPORT RandomTransformOptions {
  // What lies outside of an image: "reflect" (d c b a | a b c d | d c b a), "constant" (fill_value), "wrap" (a b c d |
  // a b c d | a b c d) or "nearest" (a a a a | a b c d | d d d d).
  std::string fill_mode = "reflect";
  std::string interpolation = "bilinear";  // or "nearest"
  int64_t seed = 0;
  double fill_value = 0;
  std::string name;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// The next three transform images in training (ops::ImageProjectiveTransformV3). One number b as a factor means {-b,
// b}. If layers with weights stand before them, their gradients are the derivatives. (Keras's are about the same:
// TensorFlow moves gradients back by the inverse transform.) Throw InvalidArgumentError for other factors, fill modes
// and interpolations.
//
// Shifts images: by a part of their height downwards, and by a part of their width to the right. The parts are drawn
// from the factors, which lie in [-1, 1].
COHORT_EXPORT LayerRef RandomTranslation(const FactorRange& height_factor, const FactorRange& width_factor,
                                         const RandomTransformOptions& options = {});
// Turns images around their middle, by a part of a full turn that is drawn from `factor`, which lies in [-1, 1]. A
// positive part turns against the clock.
COHORT_EXPORT LayerRef RandomRotation(const FactorRange& factor, const RandomTransformOptions& options = {});
// Zooms: an image shows 1 + f times as many rows and columns around its middle as before. f is drawn from the factors,
// which lie in (-1, 1]; a negative f makes things larger. Without a width_factor both have the same f.
COHORT_EXPORT LayerRef RandomZoom(const FactorRange& height_factor,
                                  const std::optional<FactorRange>& width_factor = std::nullopt,
                                  const RandomTransformOptions& options = {});

}  // namespace cohort::keras
