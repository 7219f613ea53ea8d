// The layers that put several values together: what they compute and refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing/throws.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;

Tensor FloatsOf(const Floats& values, const Shape& shape) { return Tensor::FromValues(values, shape); }

// Returns what the layer makes of (1, -2), (3, 4) and, if it is asked for, (-5, 6).
Floats Merged(const LayerRef& layer, bool three = true) {
  const LayerTensor a = Input(Shape{2}), b = Input(Shape{2}), c = Input(Shape{2});
  std::vector<LayerTensor> inputs = {a, b, c};
  std::vector<Tensor> x = {FloatsOf({1, -2}, Shape{1, 2}), FloatsOf({3, 4}, Shape{1, 2}),
                           FloatsOf({-5, 6}, Shape{1, 2})};
  if (!three) {
    inputs.pop_back();
    x.pop_back();
  }
  Model model(inputs, {layer(inputs)});
  return model.PredictAll(ModelData(x, std::vector<Tensor>{})).at(0).ToVector<float>();
}

TEST(MergingLayersTest, ElementByElement) {
  EXPECT_THAT(Merged(Add()), ElementsAre(-1, 8));
  EXPECT_THAT(Merged(Multiply()), ElementsAre(-15, -48));
  EXPECT_THAT(Merged(Average(), false), ElementsAre(2, 1));
  EXPECT_THAT(Merged(Average()), Pointwise(FloatNear(1e-6f), Floats{-1.0f / 3, 8.0f / 3}));
  EXPECT_THAT(Merged(Maximum()), ElementsAre(3, 6));
  EXPECT_THAT(Merged(Minimum()), ElementsAre(-5, -2));
  EXPECT_THAT(Merged(Subtract(), false), ElementsAre(-2, -6));
}

TEST(MergingLayersTest, BroadcastsAndRefuses) {
  EXPECT_EQ(Multiply()({Input(Shape{4, 1}), Input(Shape{1, 3})}).shape(), (Shape{-1, 4, 3}));
  const LayerTensor a = Input(Shape{2});
  for (const LayerRef& layer : {Add(), Multiply(), Average(), Maximum(), Minimum()}) {
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { layer(a); }), HasSubstr("two inputs or more; got 1"));
  }
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Subtract()({a, a, a});
              }),
              HasSubstr("[keras/subtract] expected two inputs; got 3"));
}

}  // namespace
}  // namespace cohort::keras
