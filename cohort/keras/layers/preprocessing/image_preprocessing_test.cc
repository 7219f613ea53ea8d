// The layers that prepare images: their geometry, and the statistics of what they draw. tests/interop compares them
// with Keras.
#include "cohort/keras/layers/preprocessing/image_preprocessing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "cohort/core/testing/throws.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/layer_instance.h"
#include "cohort/keras/model.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/constant.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;

// Returns what the layer makes of images in a training step.
Tensor Trained(const LayerRef& layer, const Tensor& images, int64_t step = 3) {
  Graph graph;
  WeightStore store(graph);
  LayerInstance instance(store, {.training = true, .step = ops::Const(graph, step)});
  const Output y = instance.Add(*layer, "images", {ops::Const(graph, images)}).at(0);
  Session session(graph);
  return session.Run(y);
}

// One image with these rows, of one channel.
Tensor Image(const std::vector<Floats>& rows) {
  Floats all;
  for (const Floats& row : rows) all.insert(all.end(), row.begin(), row.end());
  return Tensor::Vector(all).Reshaped(
      Shape{1, static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size()), 1});
}

// `count` images [rows, columns, 1], each with the elements 0, 1, ...
Tensor SameImages(int64_t count, int64_t rows, int64_t columns) {
  Tensor images(DType::kFloat32, Shape{count, rows, columns, 1});
  for (int64_t i = 0; i < images.num_elements(); ++i)
    images.data<float>()[i] = static_cast<float>(i % (rows * columns));
  return images;
}

// The elements of image `i`.
Floats ImageOf(const Tensor& images, int64_t i) {
  const int64_t size = images.shape().Sub(1, 4).num_elements();
  const float* begin = images.data<float>() + i * size;
  return {begin, begin + size};
}

TEST(ImagePreprocessingTest, ResizingInterpolatesBetweenCenters) {
  const Tensor image = Image({{0, 4}, {8, 12}});
  EXPECT_THAT(RunLayer(Resizing(2, 4), image).ToVector<float>(), ElementsAre(0, 1, 3, 4, 8, 9, 11, 12));
  EXPECT_THAT(RunLayer(Resizing(1, 1), image).ToVector<float>(), ElementsAre(6));
  EXPECT_THAT(RunLayer(Resizing(2, 4, {.interpolation = "nearest"}), image).ToVector<float>(),
              ElementsAre(0, 0, 4, 4, 8, 8, 12, 12));
  EXPECT_EQ(ShapeAfter(Resizing(5, 7), Shape{3, 4, 2}), (Shape{-1, 5, 7, 2}));
}

TEST(ImagePreprocessingTest, ResizingKeepsProportions) {
  const Tensor image = Image({{0, 1, 2, 3}, {4, 5, 6, 7}});
  EXPECT_THAT(RunLayer(Resizing(2, 2, {.crop_to_aspect_ratio = true}), image).ToVector<float>(),
              ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(RunLayer(Resizing(4, 4, {.pad_to_aspect_ratio = true, .fill_value = 9}), image).ToVector<float>(),
              ElementsAre(9, 9, 9, 9, 0, 1, 2, 3, 4, 5, 6, 7, 9, 9, 9, 9));
}

TEST(ImagePreprocessingTest, IntegersBecomeFloats) {
  const Tensor bytes = Tensor::Vector<uint8_t>({0, 255, 10, 20}).Reshaped(Shape{1, 2, 2, 1});
  EXPECT_THAT(RunLayer(Resizing(1, 2), bytes).ToVector<float>(), ElementsAre(5, 137.5f));
  EXPECT_THAT(RunLayer(CenterCrop(1, 2), bytes).ToVector<float>(), ElementsAre(0, 255));
  EXPECT_THAT(RunLayer(RandomFlip(), bytes).ToVector<float>(), ElementsAre(0, 255, 10, 20));
}

TEST(ImagePreprocessingTest, CenterCropTakesTheMiddleOrResizes) {
  const Tensor image = SameImages(1, 4, 5);
  EXPECT_THAT(RunLayer(CenterCrop(2, 3), image).ToVector<float>(), ElementsAre(6, 7, 8, 11, 12, 13));
  // Two rows of five are too few for four: a square of them is resized.
  const Tensor low = Image({{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}});
  EXPECT_THAT(RunLayer(CenterCrop(4, 4), low).ToVector<float>(),
              Pointwise(FloatNear(1e-5f), RunLayer(Resizing(4, 4), Image({{1, 2}, {6, 7}})).ToVector<float>()));
}

TEST(ImagePreprocessingTest, FlipsOneHalfOfTheImages) {
  const Tensor images = SameImages(400, 2, 2);
  const std::pair<const char*, Floats> modes[] = {
      {"horizontal", {1, 0, 3, 2}}, {"vertical", {2, 3, 0, 1}}, {"horizontal_and_vertical", {3, 2, 1, 0}}};
  for (const auto& [mode, flipped] : modes) {
    const Tensor y = Trained(RandomFlip(mode, {.seed = 2}), images);
    int flips = 0;
    for (int64_t i = 0; i < 400; ++i) {
      const Floats image = ImageOf(y, i);
      if (image == flipped) ++flips;
      EXPECT_TRUE(image == flipped || image == ImageOf(images, i)) << mode;
    }
    EXPECT_NEAR(flips, 200, 50) << mode;
  }
}

TEST(ImagePreprocessingTest, CropsAllImagesOfABatchAtOneRandomPlace) {
  const Tensor images = SameImages(3, 4, 5);
  std::set<float> corners;
  for (int64_t step = 0; step < 200; ++step) {
    const Tensor y = Trained(RandomCrop(2, 3), images, step);
    ASSERT_EQ(y.shape(), (Shape{3, 2, 3, 1}));
    const Floats first = ImageOf(y, 0);
    EXPECT_THAT(first, ElementsAre(first[0], first[0] + 1, first[0] + 2, first[0] + 5, first[0] + 6, first[0] + 7));
    EXPECT_EQ(ImageOf(y, 1), first);
    EXPECT_EQ(ImageOf(y, 2), first);
    corners.insert(first[0]);
  }
  EXPECT_THAT(corners, ElementsAre(0, 1, 2, 5, 6, 7, 10, 11, 12));
}

TEST(ImagePreprocessingTest, CropsAroundTheMiddleOutsideOfTraining) {
  const Tensor square = SameImages(1, 4, 4);
  EXPECT_THAT(RunLayer(RandomCrop(2, 2), square).ToVector<float>(), ElementsAre(2.5f, 4.5f, 10.5f, 12.5f));
  // Images that are too small are not cropped at random in training either.
  const Tensor row = Image({{0, 1, 2, 3}});
  const Tensor expected = RunLayer(Resizing(2, 2), Image({{1}}));
  EXPECT_EQ(RunLayer(RandomCrop(2, 2), row).ToVector<float>(), expected.ToVector<float>());
  EXPECT_EQ(Trained(RandomCrop(2, 2), row).ToVector<float>(), expected.ToVector<float>());
}

TEST(ImagePreprocessingTest, BrightnessDrawsOneNumberForEachImage) {
  const Tensor gray = Counting(Shape{2000, 1, 2, 1}, 100, 0);
  const Tensor y = Trained(RandomBrightness({-0.1, 0.3}, {.value_range = {0, 200}}), gray);
  double mean = 0, low = 1000, high = -1000;
  for (int64_t i = 0; i < 2000; ++i) {
    const Floats image = ImageOf(y, i);
    EXPECT_EQ(image[0], image[1]);
    mean += static_cast<double>(image[0]) / 2000;
    low = std::min<double>(low, image[0]);
    high = std::max<double>(high, image[0]);
  }
  EXPECT_NEAR(mean, 120, 2);
  EXPECT_NEAR(low, 80, 1);
  EXPECT_NEAR(high, 160, 1);
  EXPECT_THAT(Trained(RandomBrightness({0.8, 0.8}, {.value_range = {0, 200}}), Image({{10, 100}})).ToVector<float>(),
              ElementsAre(170, 200));
}

TEST(ImagePreprocessingTest, ContrastKeepsTheMeanOfEachChannel) {
  // Two channels, with the means 2 and 20.
  const Tensor image = Tensor::Vector<float>({1, 10, 3, 30}).Reshaped(Shape{1, 1, 2, 2});
  for (int64_t step = 0; step < 50; ++step) {
    const Floats y = Trained(RandomContrast({0.5, 0.25}, {.value_range = {0, 100}}), image, step).ToVector<float>();
    const float by = 2 - y[0];
    EXPECT_GE(by, 0.75f - 1e-5f);
    EXPECT_LT(by, 1.5f + 1e-5f);
    EXPECT_THAT(y, Pointwise(FloatNear(1e-4f), Floats{2 - by, 20 - 10 * by, 2 + by, 20 + 10 * by}));
  }
  EXPECT_THAT(Trained(RandomContrast({0, 1}, {.value_range = {2, 20}}), image).ToVector<float>(),
              ElementsAre(2, ::testing::Ge(2), ::testing::Ge(3), 20));
}

TEST(ImagePreprocessingTest, AQuarterTurnIsAgainstTheClock) {
  const Tensor image = Image({{0, 1, 2}, {3, 4, 5}, {6, 7, 8}});
  const Floats turned = {2, 5, 8, 1, 4, 7, 0, 3, 6};
  for (const char* interpolation : {"nearest", "bilinear"}) {
    const LayerRef quarter = RandomRotation({0.25, 0.25}, {.interpolation = interpolation});
    EXPECT_THAT(Trained(quarter, image).ToVector<float>(), Pointwise(FloatNear(1e-4f), turned)) << interpolation;
  }
}

TEST(ImagePreprocessingTest, TranslationShiftsDownAndRight) {
  const Tensor image = Image({{1, 2}, {3, 4}});
  const auto shifted = [&](const char* fill_mode) {
    return Trained(RandomTranslation({0.5, 0.5}, {-0.5, -0.5}, {.fill_mode = fill_mode, .fill_value = 9}), image)
        .ToVector<float>();
  };
  EXPECT_THAT(shifted("constant"), ElementsAre(9, 9, 2, 9));
  EXPECT_THAT(shifted("nearest"), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(shifted("reflect"), ElementsAre(2, 2, 2, 2));
}

TEST(ImagePreprocessingTest, TransformsDrawNumbersForEachImage) {
  // The image is a ramp from left to right, so a pixel of the middle says how far it was moved.
  const Tensor ramps = [] {
    Tensor images(DType::kFloat32, Shape{500, 3, 101, 1});
    for (int64_t i = 0; i < images.num_elements(); ++i) images.data<float>()[i] = static_cast<float>(i % 101);
    return images;
  }();
  const Tensor moved = Trained(RandomTranslation(0, {-0.1, 0.3}), ramps);
  const Tensor zoomed = Trained(RandomZoom(0, FactorRange(-0.5, 0)), ramps);
  double mean = 0, least = 1, most = 0;
  std::set<float> places;
  for (int64_t i = 0; i < 500; ++i) {
    const float shift = (50 - ImageOf(moved, i)[101 + 50]) / 101;
    EXPECT_GE(shift, -0.1f - 1e-4f);
    EXPECT_LE(shift, 0.3f + 1e-4f);
    mean += static_cast<double>(shift) / 500;
    places.insert(shift);
    const double wide = (ImageOf(zoomed, i)[101 + 60] - 50) / 10;
    EXPECT_NEAR(ImageOf(zoomed, i)[101 + 50], 50, 1e-3);
    least = std::min(least, wide);
    most = std::max(most, wide);
  }
  EXPECT_NEAR(mean, 0.1, 0.02);
  EXPECT_GT(places.size(), 450u);
  EXPECT_NEAR(least, 0.5, 0.02);
  EXPECT_NEAR(most, 1, 0.02);
}

TEST(ImagePreprocessingTest, OneFactorZoomsBothAxes) {
  // Each pixel is 10 * row + column, so a shift by rows and one by columns are seen apart.
  Tensor image(DType::kFloat32, Shape{1, 9, 9, 1});
  for (int64_t i = 0; i < 81; ++i) image.data<float>()[i] = static_cast<float>(i / 9 * 10 + i % 9);
  const Floats y = Trained(RandomZoom({-0.6, -0.1}, {}, {.seed = 8}), image).ToVector<float>();
  const float right = y[4 * 9 + 6] - y[4 * 9 + 4], down = y[6 * 9 + 4] - y[4 * 9 + 4];
  EXPECT_NEAR(down, 10 * right, 1e-3);
  EXPECT_GT(right, 2 * 0.4f - 1e-3f);
  EXPECT_LT(right, 2 * 0.9f + 1e-3f);
}

TEST(ImagePreprocessingTest, RandomLayersActInTrainingOnlyAndDrawAgainInEachStep) {
  const Tensor images = SameImages(8, 5, 6);
  const LayerRef layers[] = {RandomFlip(),          RandomContrast(0.5),
                             RandomBrightness(0.5), RandomTranslation(0.3, 0.3),
                             RandomRotation(0.2),   RandomZoom(0.3, FactorRange(0.2))};
  for (const LayerRef& layer : layers) {
    EXPECT_EQ(RunLayer(layer, images).ToVector<float>(), images.ToVector<float>()) << layer->class_name();
    const Floats once = Trained(layer, images, 1).ToVector<float>();
    EXPECT_EQ(once, Trained(layer, images, 1).ToVector<float>()) << layer->class_name();
    EXPECT_NE(once, Trained(layer, images, 2).ToVector<float>()) << layer->class_name();
    EXPECT_EQ(ShapeAfter(layer, Shape{5, 6, 1}), (Shape{-1, 5, 6, 1})) << layer->class_name();
  }
}

TEST(ImagePreprocessingTest, ModelsOfMixedPrecisionTrain) {
  Sequential model(
      {Input(Shape{6, 6, 2}), Conv2D(3, 2), Resizing(6, 6), RandomFlip(), RandomCrop(5, 4),
       RandomContrast(0.5, {.value_range = {-4, 4}}), RandomBrightness(0.1, {.value_range = {-4, 4}}), CenterCrop(5, 5),
       Conv2D(2, 1), RandomTranslation(0.1, 0.1), RandomRotation(0.1), RandomZoom(0.1), Flatten(), Dense(1)},
      {.dtype_policy = "mixed_bfloat16"});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = Counting(Shape{4, 6, 6, 2}, -1, 0.005f), y = Counting(Shape{4, 1}, 0, 0.5f);
  const std::vector<double> losses = model.Fit(x, y, {.batch_size = 4, .epochs = 3, .verbose = 0})["loss"];
  EXPECT_TRUE(std::isfinite(losses.back()));
}

// Returns the message of the InvalidArgumentError that `call` throws.
template <typename Call>
std::string RefusalOf(const Call& call) {
  return MessageOf<InvalidArgumentError>(call);
}

TEST(ImagePreprocessingTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(RefusalOf([] { Resizing(0, 2); }), HasSubstr("a height and a width of at least 1; got 0 and 2"));
  EXPECT_THAT(RefusalOf([] { Resizing(2, 2, {.interpolation = "bicubic"}); }), HasSubstr("got 'bicubic'"));
  EXPECT_THAT(RefusalOf([] { Resizing(2, 2, {.crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true}); }),
              HasSubstr("got both"));
  EXPECT_THAT(RefusalOf([] { RandomFlip("diagonal"); }), HasSubstr("got 'diagonal'"));
  EXPECT_THAT(RefusalOf([] { RandomContrast(-0.1); }), HasSubstr("a factor in [0, 1]; got -0.1"));
  EXPECT_THAT(RefusalOf([] { RandomBrightness({0, 1.5}); }), HasSubstr("a factor in [-1, 1]; got 1.5"));
  EXPECT_THAT(RefusalOf([] { RandomBrightness(0.1, {.value_range = {1, 0}}); }), HasSubstr("got 1, 0"));
  EXPECT_THAT(RefusalOf([] { RandomTranslation(0.1, 2); }), HasSubstr("a width_factor in [-1, 1]; got 2"));
  EXPECT_THAT(RefusalOf([] { RandomZoom({-1, 0}); }), HasSubstr("a height_factor in (-1, 1]; got -1"));
  EXPECT_THAT(RefusalOf([] { RandomRotation(0.1, {.fill_mode = "mirror"}); }), HasSubstr("got 'mirror'"));
  EXPECT_THAT(RefusalOf([] { RandomRotation(0.1, {.interpolation = "cubic"}); }), HasSubstr("got 'cubic'"));
  EXPECT_THAT(RefusalOf([] {
                ShapeAfter(CenterCrop(2, 2), Shape{4, 3});
              }),
              HasSubstr("[batch, rows, columns, channels]"));
  EXPECT_THAT(RefusalOf([] { ShapeAfter(CenterCrop(2, 2), Shape{-1, 4, 3}); }), HasSubstr("dimension 1"));
}

}  // namespace
}  // namespace cohort::keras
