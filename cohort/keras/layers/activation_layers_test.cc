// The layers that change each element, turn or pad their inputs, and the global pools: what they compute and refuse,
// and that files keep the options of these and of the merging layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/sequence_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;

Tensor FloatsOf(const Floats& values, const Shape& shape) { return Tensor::FromValues(values, shape); }

TEST(ActivationLayersTest, ReLU) {
  const Tensor x = FloatsOf({-2, -0.5f, 0.5f, 3}, Shape{1, 4});
  EXPECT_THAT(RunLayer(ReLU(), x).ToVector<float>(), ElementsAre(0, 0, 0.5f, 3));
  EXPECT_THAT(RunLayer(ReLU({.max_value = 2}), x).ToVector<float>(), ElementsAre(0, 0, 0.5f, 2));
  EXPECT_THAT(RunLayer(ReLU({.negative_slope = 0.5}), x).ToVector<float>(), ElementsAre(-1, -0.25f, 0.5f, 3));
  // Below the threshold: slope * (x - threshold).
  EXPECT_THAT(RunLayer(ReLU({.max_value = 2, .negative_slope = 0.5, .threshold = 1}), x).ToVector<float>(),
              ElementsAre(-1.5f, -0.75f, -0.25f, 2));
  EXPECT_THAT(RunLayer(LeakyReLU(), x).ToVector<float>(), Pointwise(FloatNear(1e-6f), Floats{-0.6f, -0.15f, 0.5f, 3}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ReLU({.negative_slope = -0.5}); }), HasSubstr("none, -0.5 and 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ReLU({.max_value = -1}); }), HasSubstr("got -1, 0 and 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { LeakyReLU({.negative_slope = -2}); }), HasSubstr("got -2"));
}

TEST(ActivationLayersTest, PReLUAndELU) {
  const Tensor x = FloatsOf({-2, -1, 1, 3}, Shape{1, 2, 2});
  const Tensor each = FloatsOf({0.5f, 2, 3, 4}, Shape{2, 2}), columns = FloatsOf({0.5f, 2}, Shape{1, 2});
  EXPECT_THAT(RunLayer(PReLU(), x, {each}).ToVector<float>(), ElementsAre(-1, -2, 1, 3));
  const Tensor below = FloatsOf({-2, -1, -1, -3}, Shape{1, 2, 2});
  EXPECT_THAT(RunLayer(PReLU({.shared_axes = {1}}), below, {columns}).ToVector<float>(),
              ElementsAre(-1, -2, -0.5f, -6));
  EXPECT_THAT(RunLayer(PReLU(), x).ToVector<float>(), ElementsAre(0, 0, 1, 3));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(PReLU({.shared_axes = {3}}), Shape{4, 5});
              }),
              HasSubstr("shared axes from 1 to 2 for an input [?,4,5]; got 3"));
  const Floats expected = {std::exp(-2.0f) - 1, std::exp(-1.0f) - 1, 1, 3};
  EXPECT_THAT(RunLayer(ELU(), x).ToVector<float>(), Pointwise(FloatNear(1e-6f), expected));
  EXPECT_THAT(RunLayer(ELU({.alpha = 0.5}), x).ToVector<float>(),
              Pointwise(FloatNear(1e-6f), Floats{0.5f * expected[0], 0.5f * expected[1], 1, 3}));
}

TEST(ActivationLayersTest, SoftmaxAlongAnAxis) {
  const Tensor x = FloatsOf({0, 0, 0, 0}, Shape{1, 2, 2});
  EXPECT_THAT(RunLayer(Softmax(), x).ToVector<float>(), ElementsAre(0.5f, 0.5f, 0.5f, 0.5f));
  const Tensor steep = FloatsOf({0, 0, 100, -100}, Shape{1, 2, 2});
  EXPECT_THAT(RunLayer(Softmax(), steep).ToVector<float>(), Pointwise(FloatNear(1e-6f), Floats{0.5f, 0.5f, 1, 0}));
  EXPECT_THAT(RunLayer(Softmax({.axis = 1}), steep).ToVector<float>(), Pointwise(FloatNear(1e-6f), Floats{0, 1, 1, 0}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(Softmax({.axis = 3}), Shape{2, 2});
              }),
              AllOf(HasSubstr("axis 3"), HasSubstr("[?,2,2]")));
}

TEST(ActivationLayersTest, Rescaling) {
  EXPECT_THAT(RunLayer(Rescaling(2, {.offset = -1}), FloatsOf({0, 1}, Shape{1, 2})).ToVector<float>(),
              ElementsAre(-1, 1));
  EXPECT_THAT(
      RunLayer(Rescaling(std::vector<double>{2, 3}, {.offset = std::vector<double>{0, 10}}), Counting(Shape{1, 2, 2}))
          .ToVector<float>(),
      ElementsAre(0, 13, 4, 19));
  const Tensor bytes = Tensor::FromValues(std::vector<uint8_t>{0, 255}, Shape{1, 2});
  EXPECT_THAT(RunLayer(Rescaling(1.0 / 255), bytes).ToVector<float>(), Pointwise(FloatNear(1e-6f), Floats{0, 1}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(Rescaling(std::vector<double>{1, 2}), Shape{4, 3});
              }),
              AllOf(HasSubstr("each of the 3 channels"), HasSubstr("[?,4,3]"), HasSubstr("got 2 numbers")));
}

TEST(ActivationLayersTest, PermuteAndZeroPadding) {
  const Tensor x = Counting(Shape{1, 2, 3});
  const Tensor y = RunLayer(Permute({2, 1}), x);
  EXPECT_EQ(y.shape(), (Shape{1, 3, 2}));
  EXPECT_THAT(y.ToVector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Permute({0, 1}); }), HasSubstr("got [0,1]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(Permute({2, 1}), Shape{2, 3, 4});
              }),
              AllOf(HasSubstr("2 axes"), HasSubstr("[?,2,3,4]")));

  const Tensor image = Counting(Shape{1, 1, 2, 1}, 1);
  EXPECT_THAT(RunLayer(ZeroPadding2D({{1, 0}, {0, 2}}), image).ToVector<float>(), ElementsAre(0, 0, 0, 0, 1, 2, 0, 0));
  EXPECT_EQ(ShapeAfter(ZeroPadding2D(), Shape{4, 5, 3}), (Shape{-1, 6, 7, 3}));
  EXPECT_EQ(ShapeAfter(ZeroPadding2D({1, 2}), Shape{4, 5, 3}), (Shape{-1, 6, 9, 3}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ZeroPadding2D(-1); }), HasSubstr("at least 0; got -1"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ShapeAfter(ZeroPadding2D(), Shape{4, 5}); }), HasSubstr("rank 4"));
}

TEST(ActivationLayersTest, GlobalPools) {
  const Tensor image = FloatsOf({1, -2, 3, 4, 5, -6, 0, 8}, Shape{1, 2, 2, 2});
  EXPECT_THAT(RunLayer(GlobalMaxPooling2D(), image).ToVector<float>(), ElementsAre(5, 8));
  EXPECT_EQ(ShapeAfter(GlobalMaxPooling2D({.keepdims = true}), Shape{3, 4, 5}), (Shape{-1, 1, 1, 5}));
  EXPECT_THAT(RunLayer(GlobalAveragePooling1D(), Counting(Shape{1, 3, 2})).ToVector<float>(), ElementsAre(2, 3));
  EXPECT_EQ(ShapeAfter(GlobalAveragePooling1D({.keepdims = true}), Shape{3, 4}), (Shape{-1, 1, 4}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(GlobalAveragePooling1D(), Shape{3, 4, 5});
              }),
              HasSubstr("rank 3 [batch, steps, features]"));
}

// Options that are not the defaults come back from a file.
TEST(ActivationLayersTest, FilesKeepTheOptions) {
  const testing::TempFolder folder;
  const LayerTensor x = Input(Shape{4, 6, 2});
  const LayerTensor scaled =
      Rescaling(std::vector<double>{0.5, 2}, {.offset = std::vector<double>{1, -1}, .name = "scaled"})(x);
  const LayerTensor padded = ZeroPadding2D({{1, 0}, {2, 3}})(Rescaling(0.5, {.offset = 0.25})(scaled));
  const LayerTensor rectified =
      LeakyReLU({.negative_slope = 0.125})(ReLU({.max_value = 6, .negative_slope = 0.1, .threshold = 0.5})(padded));
  const LayerTensor turned = Softmax({.axis = 1})(Permute({3, 1, 2})(ReLU()(rectified)));
  const LayerTensor a = GlobalMaxPooling2D({.keepdims = true})(turned), b = GlobalMaxPooling2D()(padded);
  const LayerTensor steps = GlobalAveragePooling1D({.keepdims = true})(Reshape({5, 22})(padded));
  const LayerTensor one = Dense(2)(Flatten()(a)), two = Dense(2)(Flatten()(steps));
  const LayerTensor merged = Subtract()({Multiply()({one, two, b}), Average()({one, b})});
  const Model model({x}, {Maximum()({merged, Minimum()({two, one}), Add()({one, b})})}, {.seed = 3});
  model.Save(folder / "a.keras");
  const Model loaded = LoadModel(folder / "a.keras");
  loaded.Save(folder / "b.keras");
  EXPECT_EQ(ReadModelArchive(folder / "a.keras").config, ReadModelArchive(folder / "b.keras").config);
  const Tensor data = Counting(Shape{2, 4, 6, 2}, -1, 0.03f);
  EXPECT_EQ(Model(loaded).Predict(data).ToVector<float>(), Model(model).Predict(data).ToVector<float>());
}

}  // namespace
}  // namespace cohort::keras
