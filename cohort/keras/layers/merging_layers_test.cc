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

// Returns what the layer makes of two values.
Tensor Product(const LayerRef& layer, const Tensor& a, const Tensor& b) {
  const LayerTensor x = Input(a.shape().Sub(1, a.shape().rank())), y = Input(b.shape().Sub(1, b.shape().rank()));
  Model model({x, y}, {layer({x, y})});
  return model.PredictAll(ModelData({a, b}, std::vector<Tensor>{})).at(0);
}

TEST(MergingLayersTest, Dot) {
  const Tensor v = FloatsOf({1, 2, 3, 4}, Shape{2, 2}), w = FloatsOf({10, 1, 1, 10}, Shape{2, 2});
  const Tensor dots = Product(Dot(1), v, w);
  EXPECT_EQ(dots.shape(), (Shape{2, 1}));
  EXPECT_THAT(dots.ToVector<float>(), ElementsAre(12, 43));
  EXPECT_THAT(Product(Dot(-1, {.normalize = true}), v, v).ToVector<float>(), Pointwise(FloatNear(1e-6f), Floats{1, 1}));
  // Rows of [[0, 1, 2], [3, 4, 5]] with a vector, and columns with rows.
  const Tensor matrix = Counting(Shape{1, 2, 3}), vector = FloatsOf({1, 10, 100}, Shape{1, 3});
  EXPECT_THAT(Product(Dot({2, 1}), matrix, vector).ToVector<float>(), ElementsAre(210, 543));
  EXPECT_THAT(Product(Dot({1, 2}), vector, matrix).ToVector<float>(), ElementsAre(210, 543));
  const Tensor products = Product(Dot({1, 2}), matrix, FloatsOf({1, 10, 0, 1}, Shape{1, 2, 2}));
  EXPECT_EQ(products.shape(), (Shape{1, 3, 2}));
  EXPECT_THAT(products.ToVector<float>(), ElementsAre(30, 3, 41, 4, 52, 5));
  EXPECT_EQ(Dot({2, 3})({Input(Shape{4, 5, 6}), Input(Shape{2, 3, 5})}).shape(), (Shape{-1, 4, 6, 2, 3}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                Dot(1)({Input(Shape{4}), Input(Shape{5})});
              }),
              HasSubstr("along the axes 1 and 1; got the inputs [?,4] and [?,5]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                Dot(0)({Input(Shape{4}), Input(Shape{4})});
              }),
              HasSubstr("got the axis 0 of an input [?,4]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Dot(1)(Input(Shape{4})); }), HasSubstr("two inputs; got 1"));
}

}  // namespace
}  // namespace cohort::keras
