// Dice, Tversky, CategoricalHinge and the focal cross-entropies on numbers worked out by hand; tests/interop compares
// them with Keras on random ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/softmax.h"
#include "tests/ops/interpreter.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class OverlapLossTest : public ::testing::Test {
 protected:
  Output Matrix(const std::vector<float>& values, int64_t columns) {
    return ops::Const(graph, values, Shape{static_cast<int64_t>(values.size()) / columns, columns});
  }
  std::vector<float> Values(Output value) { return run.Run1(value).ToVector<float>(); }
  float Scalar(Output value) { return run.Run1(value).scalar<float>(); }

  Graph graph;
  ::cohort::testing::Interpreter run;
};

TEST_F(OverlapLossTest, DiceHasOneValueForTheBatch) {
  const Output t = Matrix({1, 0, 1, 1}, 2), p = Matrix({0.5, 0.5, 1, 0}, 2);
  const float value = 1 - 2 * 1.5f / (3 + 2);
  // Each example has the value, so that the mean is the value.
  EXPECT_THAT(Values(Dice()->PerExample(t, p)), Pointwise(FloatNear(1e-6f), std::vector<float>{value, value}));
  const LossSums sums = Dice()->Sums(t, p);
  EXPECT_NEAR(Scalar(sums.sum), 2 * value, 1e-6f);
  EXPECT_EQ(Scalar(sums.weight), 2);
  // A sum is the value itself, and weights multiply it.
  EXPECT_NEAR(Scalar(Dice({.reduction = Reduction::kSum})->Sums(t, p).sum), value, 1e-6f);
  const Output weights = ops::Const(graph, std::vector<float>{1, 3});
  EXPECT_NEAR(Scalar(Dice({.reduction = Reduction::kSum})->Sums(t, p, weights).sum), 4 * value, 1e-6f);
  EXPECT_NEAR(Scalar(Dice()->Sums(t, p, weights).sum), 4 * value, 1e-6f);
  const LossSums mean = Dice({.reduction = Reduction::kMeanWithSampleWeight})->Sums(t, p, weights);
  EXPECT_NEAR(Scalar(mean.sum) / Scalar(mean.weight), value, 1e-6f);
}

TEST_F(OverlapLossTest, AxesGiveOneValueForEachExample) {
  const Output t = Matrix({1, 0, 1, 1}, 2), p = Matrix({0.5, 0.5, 1, 0}, 2);
  const std::vector<float> dice = {1 - 2 * 0.5f / (1 + 1), 1 - 2 * 1.0f / (2 + 1)};
  EXPECT_THAT(Values(Dice({.axis = {1}})->PerExample(t, p)), Pointwise(FloatNear(1e-6f), dice));
  EXPECT_THAT(Values(Dice({.axis = {-1}})->PerExample(t, p)), Pointwise(FloatNear(1e-6f), dice));
  EXPECT_THAT(Values(Tversky({.axis = {1}})->PerExample(t, p)), Pointwise(FloatNear(1e-6f), dice));
  // alpha is the weight of what is missed, beta of what is too much.
  EXPECT_THAT(Values(Tversky({.alpha = 2, .beta = 3, .axis = {1}})->PerExample(t, p)),
              Pointwise(FloatNear(1e-6f), std::vector<float>{1 - 0.5f / (0.5f + 2 * 0.5f + 3 * 0.5f), 1 - 1.0f / 3}));
}

TEST_F(OverlapLossTest, NoExamplesAddNothing) {
  const Output none = ops::Const(graph, std::vector<float>{}, Shape{0, 2});
  EXPECT_EQ(Scalar(Dice()->Sums(none, none).sum), 0);
  EXPECT_EQ(Scalar(Dice()->Sums(none, none).weight), 0);
}

TEST_F(OverlapLossTest, CategoricalHingeComparesTheBestOtherClass) {
  const Output t = Matrix({0, 1, 0, 1, 0, 0}, 3), p = Matrix({0.5, 0.25, -1, 3, 1, 0}, 3);
  EXPECT_THAT(Values(CategoricalHinge()->PerExample(t, p)),
              Pointwise(FloatNear(1e-6f), std::vector<float>{1 + 0.5f - 0.25f, 0}));
}

TEST_F(OverlapLossTest, AFocalLossOfARightAnswerHasAGradient) {
  const Output t = Matrix({1, 0}, 2), logits = Matrix({40, -40}, 2);
  for (const double gamma : {0.0, 0.5, 1.0, 2.0}) {
    const Output binary = BinaryFocalCrossentropy({.gamma = gamma})->PerExample(t, ops::Sigmoid(logits));
    const Output categories = CategoricalFocalCrossentropy({.gamma = gamma})->PerExample(t, ops::Softmax(logits));
    for (const Output& loss : {binary, categories}) {
      for (const float gradient : Values(Gradients({loss}, {logits})[0].values))
        EXPECT_NEAR(gradient, 0, 1e-3) << gamma;
    }
  }
}

TEST_F(OverlapLossTest, FocalCrossentropies) {
  const Output t = Matrix({1, 0}, 2), p = Matrix({0.75, 0.25}, 2);
  const float plain = -std::log(0.75f);
  EXPECT_NEAR(Values(BinaryFocalCrossentropy()->PerExample(t, p))[0], 0.0625f * plain, 1e-6f);
  EXPECT_NEAR(Values(BinaryFocalCrossentropy({.gamma = 0})->PerExample(t, p))[0], plain, 1e-6f);
  EXPECT_NEAR(Values(BinaryFocalCrossentropy({.gamma = 1.5})->PerExample(t, p))[0], 0.125f * plain, 1e-6f);
  EXPECT_NEAR(Values(BinaryFocalCrossentropy({.apply_class_balancing = true, .alpha = 0.2})->PerExample(t, p))[0],
              0.0625f * plain * (0.2f + 0.8f) / 2, 1e-6f);
  EXPECT_NEAR(Values(CategoricalFocalCrossentropy()->PerExample(t, p))[0], 0.25f * 0.0625f * plain, 1e-6f);
}

// The results of activations that have saturated still give losses and finite gradients.
TEST_F(OverlapLossTest, FocalCrossentropiesUseTheLogits) {
  const Output logits = Matrix({200, 0}, 2), t = Matrix({0, 1}, 2);
  const Output categorical = CategoricalFocalCrossentropy({.alpha = 1})->PerExample(t, ops::Softmax(logits));
  EXPECT_NEAR(Values(categorical)[0], 200, 1e-3f);
  const Output binary = BinaryFocalCrossentropy()->PerExample(t, ops::Sigmoid(logits));
  EXPECT_NEAR(Values(binary)[0], (200 + 0.25f * std::log(2.0f)) / 2, 1e-3f);
  for (const Output& loss :
       {categorical, binary, BinaryFocalCrossentropy({.gamma = 0})->PerExample(t, ops::Sigmoid(logits))}) {
    for (const float g : Values(ToDense(Gradients({loss}, {logits})[0]))) EXPECT_TRUE(std::isfinite(g));
  }
}

TEST_F(OverlapLossTest, WhatIsOutOfRangeIsNamed) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                Dice({.axis = {0, 1}});
              }),
              AllOf(HasSubstr("dice"), HasSubstr("{0, 1}")));
  const Output t = Matrix({1, 0}, 2);
  EXPECT_THROW(Dice({.axis = {-2}})->PerExample(t, t), InvalidArgumentError);
  EXPECT_THROW(Tversky({.axis = {2}})->PerExample(t, t), InvalidArgumentError);
  EXPECT_THROW(Dice()->PerExample(t, Matrix({1, 2, 3}, 3)), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { BinaryFocalCrossentropy({.gamma = -1}); }), HasSubstr("gamma"));
  EXPECT_THROW(CategoricalFocalCrossentropy({.label_smoothing = 2}), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { CategoricalFocalCrossentropy()->PerExample(ops::Const(graph, std::vector<int32_t>{1}), t); }),
              HasSubstr("sparse_categorical_crossentropy"));
}

}  // namespace
}  // namespace cohort::keras
