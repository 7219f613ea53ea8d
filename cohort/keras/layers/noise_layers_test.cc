// The layers that change their inputs at random, and those that normalize groups and vectors.
#include "cohort/keras/layers/noise_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cohort/core/testing/throws.h"
#include "cohort/keras/layers/layer_instance.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/constant.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;

// Returns what the layer makes of x in a training step.
Floats InTraining(const LayerRef& layer, const Tensor& x, int64_t step = 3) {
  Graph graph;
  WeightStore store(graph);
  LayerInstance instance(store, {.training = true, .step = ops::Const(graph, step)});
  const Output y = instance.Add(*layer, "noise", {ops::Const(graph, x)}).at(0);
  Session session(graph);
  return session.Run(y).ToVector<float>();
}

struct Statistics {
  double mean = 0, deviation = 0;
};
Statistics Measured(const Floats& values) {
  Statistics result;
  const auto count = static_cast<double>(values.size());
  for (const float value : values) result.mean += value / count;
  for (const float value : values) result.deviation += (value - result.mean) * (value - result.mean) / count;
  result.deviation = std::sqrt(result.deviation);
  return result;
}

TEST(NoiseLayersTest, NormalNumbers) {
  const Tensor ones = Counting(Shape{2, 4000}, 1, 0);
  const Statistics added = Measured(InTraining(GaussianNoise(0.5), ones));
  EXPECT_NEAR(added.mean, 1, 0.03);
  EXPECT_NEAR(added.deviation, 0.5, 0.03);
  // sqrt(0.2 / 0.8)
  const Statistics multiplied = Measured(InTraining(GaussianDropout(0.2), Counting(Shape{2, 4000}, 3, 0)));
  EXPECT_NEAR(multiplied.mean, 3, 0.08);
  EXPECT_NEAR(multiplied.deviation, 1.5, 0.08);
}

TEST(NoiseLayersTest, AlphaDropoutKeepsMeanAndVariance) {
  Tensor x = Counting(Shape{2, 4000}, 1, 0);
  for (int64_t i = 0; i < x.num_elements(); i += 2) x.data<float>()[i] = -1;
  const Floats y = InTraining(AlphaDropout(0.3), x);
  const Statistics measured = Measured(y);
  EXPECT_NEAR(measured.mean, 0, 0.05);
  EXPECT_NEAR(measured.deviation, 1, 0.05);
  const auto lowest = std::count(y.begin(), y.end(), *std::min_element(y.begin(), y.end()));
  EXPECT_NEAR(static_cast<double>(lowest) / static_cast<double>(y.size()), 0.3, 0.03);
}

TEST(NoiseLayersTest, SpatialDropoutDropsWholeChannels) {
  const Floats y = InTraining(SpatialDropout1D(0.5), Counting(Shape{8, 3, 16}, 1, 0));
  int dropped = 0;
  for (size_t batch = 0; batch < 8; ++batch) {
    for (size_t channel = 0; channel < 16; ++channel) {
      const auto at = [&](size_t step) { return y[(batch * 3 + step) * 16 + channel]; };
      EXPECT_THAT((Floats{at(0), at(1), at(2)}), Each(at(0) == 0 ? 0 : 2));
      dropped += at(0) == 0 ? 1 : 0;
    }
  }
  EXPECT_NEAR(dropped, 64, 25);
  const Floats images = InTraining(SpatialDropout2D(0.75), Counting(Shape{1, 2, 2, 50}, 1, 0));
  for (size_t i = 0; i < images.size(); ++i) EXPECT_EQ(images[i], images[i % 50]);
  EXPECT_THAT(images, ::testing::IsSupersetOf({0.0f, 4.0f}));
}

TEST(NoiseLayersTest, DrawsAnewInEachStepAndOnlyInTraining) {
  const Tensor x = Counting(Shape{2, 40}, 1, 0.5f);
  for (const LayerRef& layer : {GaussianNoise(0.5), GaussianDropout(0.5), AlphaDropout(0.5)}) {
    const Floats first = InTraining(layer, x, 1);
    EXPECT_EQ(first, InTraining(layer, x, 1)) << layer->class_name();
    EXPECT_NE(first, InTraining(layer, x, 2)) << layer->class_name();
    EXPECT_EQ(RunLayer(layer, x).ToVector<float>(), x.ToVector<float>()) << layer->class_name();
  }
  EXPECT_EQ(InTraining(GaussianNoise(0), x), x.ToVector<float>());
}

TEST(NoiseLayersTest, RatesOutsideOfTheirRange) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { GaussianNoise(1.5); }),
              HasSubstr("[keras/gaussian_noise] expected a stddev in [0, 1]; got 1.5"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { AlphaDropout(1); }),
              HasSubstr("[keras/alpha_dropout] expected a rate in [0, 1); got 1"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { SpatialDropout1D(-0.5); }), HasSubstr("got -0.5"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(SpatialDropout2D(0.5), Shape{4, 5});
              }),
              HasSubstr("rank 4"));
}

TEST(GroupNormalizationTest, NormalizesEachGroupOverAllPlaces) {
  // The groups are channels 0 and 1, with mean 2 and variance 1, and channels 2 and 3, with mean 12 and variance 4.
  const Tensor x = Tensor::FromValues(Floats{1, 3, 10, 10, 1, 3, 14, 14}, Shape{1, 2, 4});
  const std::vector<Tensor> weights = {Tensor::Vector<float>({1, 2, 1, 1}), Tensor::Vector<float>({0, 1, 0, 5})};
  EXPECT_THAT(RunLayer(GroupNormalization(2, {.epsilon = 0}), x, weights).ToVector<float>(),
              Pointwise(FloatNear(1e-5f), Floats{-1, 3, -1, 4, -1, 3, 1, 6}));
  const LayerRef each = GroupNormalization(-1, {.epsilon = 1, .center = false, .scale = false});
  const Tensor two = Tensor::FromValues(Floats{0, 7, 4, 7}, Shape{1, 2, 2});
  const float root = std::sqrt(5.0f);
  EXPECT_THAT(RunLayer(each, two).ToVector<float>(), Pointwise(FloatNear(1e-5f), Floats{-2 / root, 0, 2 / root, 0}));
  EXPECT_EQ(ShapeAfter(GroupNormalization(3), Shape{5, 4, 6}), (Shape{-1, 5, 4, 6}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(GroupNormalization(4), Shape{5, 6});
              }),
              HasSubstr("expected channels that 4 groups divide; got shape [?,5,6]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { GroupNormalization(0); }), HasSubstr("groups > 0, or -1; got 0"));
}

TEST(UnitNormalizationTest, DividesByTheLength) {
  const Tensor x = Tensor::FromValues(Floats{3, 4, 0, 0}, Shape{1, 2, 2});
  EXPECT_THAT(RunLayer(UnitNormalization(), x).ToVector<float>(),
              Pointwise(FloatNear(1e-6f), Floats{0.6f, 0.8f, 0, 0}));
  EXPECT_THAT(RunLayer(UnitNormalization({.axis = {1, 2}}), Counting(Shape{1, 2, 2}, 1, 0)).ToVector<float>(),
              Pointwise(FloatNear(1e-6f), Floats(4, 0.5f)));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ShapeAfter(UnitNormalization({.axis = {2}}), Shape{4}); }),
              HasSubstr("axis 2; got shape [?,4]"));
  EXPECT_THROW(UnitNormalization({.axis = {}}), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::keras
