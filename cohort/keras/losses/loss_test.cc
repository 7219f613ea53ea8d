// Losses on numbers worked out by hand; tests/interop compares them with Keras on random ones.
#include "cohort/keras/losses/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/softmax.h"
#include "tests/ops/interpreter.h"

namespace cohort::keras {
namespace {

using ::cohort::testing::Interpreter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class LossTest : public ::testing::Test {
 protected:
  Output Matrix(const std::vector<float>& values, int64_t columns) {
    return ops::Const(graph, values, Shape{static_cast<int64_t>(values.size()) / columns, columns});
  }
  Output Vector(const std::vector<float>& values) { return ops::Const(graph, values); }
  Output Labels(const std::vector<int32_t>& values) { return ops::Const(graph, values); }
  std::vector<float> Values(Output value) { return run.Run1(value).ToVector<float>(); }
  float Scalar(Output value) { return run.Run1(value).scalar<float>(); }

  Graph graph;
  Interpreter run;
};

TEST_F(LossTest, MeanSquaredErrorOfVectorsAndColumns) {
  const LossPtr loss = MeanSquaredError();
  EXPECT_EQ(loss->name(), "mean_squared_error");
  const LossSums sums = loss->Sums(Matrix({1, 2, 3, 4}, 2), Matrix({2, 2, 1, 0}, 2));
  EXPECT_FLOAT_EQ(Scalar(sums.sum), 0.5f + 10.0f);
  EXPECT_FLOAT_EQ(Scalar(sums.weight), 2.0f);
  // [batch] against [batch, 1], either way round.
  const LossSums column = loss->Sums(Vector({1, 2}), Matrix({3, 5}, 1));
  EXPECT_FLOAT_EQ(Scalar(column.sum), 4.0f + 9.0f);
  EXPECT_FLOAT_EQ(Scalar(loss->Sums(Matrix({1, 2}, 1), Vector({3, 5})).sum), 13.0f);
  EXPECT_FLOAT_EQ(Scalar(loss->Sums(Vector({1, 2}), Vector({3, 5})).weight), 2.0f);
}

TEST_F(LossTest, WeightsMultiplyAndTheDivisorFollowsTheReduction) {
  const Output t = Matrix({0, 0, 0, 0, 0, 0}, 2);
  const Output p = Matrix({1, 1, 2, 2, 3, 3}, 2);
  const Output weights = Vector({1, 0, 2});
  const LossSums plain = MeanAbsoluteError()->Sums(t, p, weights);
  EXPECT_FLOAT_EQ(Scalar(plain.sum), 7.0f);
  EXPECT_FLOAT_EQ(Scalar(plain.weight), 3.0f);
  const LossSums mean = MeanAbsoluteError({.reduction = Reduction::kMeanWithSampleWeight})->Sums(t, p, weights);
  EXPECT_FLOAT_EQ(Scalar(mean.weight), 3.0f);
  const LossSums column = MeanAbsoluteError()->Sums(t, p, Matrix({1, 0, 2}, 1));
  EXPECT_FLOAT_EQ(Scalar(column.sum), 7.0f);
  const LossSums sum = MeanAbsoluteError({.reduction = Reduction::kSum})->Sums(t, p, weights);
  EXPECT_FALSE(sum.weight.valid());
  EXPECT_FLOAT_EQ(Scalar(sum.sum), 7.0f);
}

TEST_F(LossTest, NoExamplesAddNothing) {
  const Output none = ops::Const(graph, std::vector<float>{}, Shape{0, 2});
  const Output weights = ops::Const(graph, std::vector<float>{}, Shape{0});
  for (const Reduction reduction : {Reduction::kSumOverBatchSize, Reduction::kMeanWithSampleWeight}) {
    const LossSums sums = MeanSquaredError({.reduction = reduction})->Sums(none, none, weights);
    EXPECT_EQ(Scalar(sums.sum), 0.0f);
    EXPECT_EQ(Scalar(sums.weight), 0.0f);
  }
}

TEST_F(LossTest, SparseCrossentropyTakesLabelsInEveryForm) {
  const Output p = Matrix({0.5f, 0.25f, 0.25f, 0.1f, 0.8f, 0.1f}, 3);
  const std::vector<float> expected = {-std::log(0.25f), -std::log(0.8f)};
  const LossPtr loss = SparseCategoricalCrossentropy();
  EXPECT_THAT(Values(loss->PerExample(Labels({2, 1}), p)), Pointwise(FloatNear(1e-6f), expected));
  EXPECT_THAT(Values(loss->PerExample(ops::ExpandDims(Labels({2, 1}), -1), p)), Pointwise(FloatNear(1e-6f), expected));
  EXPECT_THAT(Values(loss->PerExample(Vector({2, 1}), p)), Pointwise(FloatNear(1e-6f), expected));
  const Output bytes = ops::Cast(Labels({2, 1}), DType::kUint8);
  EXPECT_THAT(Values(loss->PerExample(bytes, p)), Pointwise(FloatNear(1e-6f), expected));
}

// A softmax that has saturated still gives a loss and a gradient, because its logits are used.
TEST_F(LossTest, SoftmaxOutputsAreReadAsTheirLogits) {
  const Output logits = Matrix({200, 0}, 2);
  EXPECT_FLOAT_EQ(Values(SparseCategoricalCrossentropy()->PerExample(Labels({1}), ops::Softmax(logits)))[0], 200.0f);
  EXPECT_FLOAT_EQ(Values(SparseCategoricalCrossentropy({.from_logits = true})->PerExample(Labels({1}), logits))[0],
                  200.0f);
  EXPECT_NEAR(Values(SparseCategoricalCrossentropy()->PerExample(Labels({1}), Matrix({1, 0}, 2)))[0], 16.118f, 1e-3f);
}

// As with Keras: from_logits=true on probabilities does not apply the activation to its own result.
TEST_F(LossTest, FromLogitsOnTheResultOfTheActivationUsesItsInput) {
  const Output logits = Matrix({2, -1, 0.5f, 0, 3, -2}, 3);
  const Output one_hot = Matrix({0, 1, 0, 0, 0, 1}, 3);
  const Output softmax = ops::Identity(ops::Softmax(logits)), sigmoid = ops::Sigmoid(logits);
  ::testing::internal::CaptureStderr();
  const Output sparse = SparseCategoricalCrossentropy({.from_logits = true})->PerExample(Labels({1, 2}), softmax);
  const Output dense = CategoricalCrossentropy({.from_logits = true})->PerExample(one_hot, softmax);
  const Output binary = BinaryCrossentropy({.from_logits = true})->PerExample(one_hot, sigmoid);
  const std::string warnings = ::testing::internal::GetCapturedStderr();
  const auto cross_entropy = [](float other, float another, float own) {
    return std::log(std::exp(other) + std::exp(another) + std::exp(own)) - own;
  };
  const std::vector<float> expected = {cross_entropy(2, 0.5f, -1), cross_entropy(0, 3, -2)};
  EXPECT_THAT(Values(sparse), Pointwise(FloatNear(1e-5f), expected));
  EXPECT_THAT(Values(dense), Pointwise(FloatNear(1e-5f), expected));
  const auto softplus = [](float x) { return std::log1p(std::exp(x)); };
  EXPECT_THAT(Values(binary),
              Pointwise(FloatNear(1e-5f), std::vector<float>{(softplus(2) + softplus(1) + softplus(0.5f)) / 3,
                                                             (softplus(0) + softplus(3) + softplus(2)) / 3}));
  EXPECT_THAT(warnings, AllOf(HasSubstr("from_logits=true"), HasSubstr("'sparse_categorical_crossentropy'"),
                              HasSubstr("'binary_crossentropy'"), HasSubstr("Softmax"), HasSubstr("Sigmoid")));
}

TEST_F(LossTest, HuberBendsAtDelta) {
  const Output zeros = Matrix({0, 0, 0, 0}, 1);
  EXPECT_THAT(Values(Huber({.delta = 2})->PerExample(zeros, Matrix({1, -2, 3, -10}, 1))), ElementsAre(0.5f, 2, 4, 18));
}

TEST_F(LossTest, RelativeAndLogarithmicErrors) {
  // A target of 0 counts as 1e-7.
  const std::vector<float> relative =
      Values(MeanAbsolutePercentageError()->PerExample(Matrix({2, -4, 0, 1}, 2), Matrix({1, -5, 1, 1}, 2)));
  EXPECT_FLOAT_EQ(relative.at(0), 37.5f);
  EXPECT_FLOAT_EQ(relative.at(1), 0.5e9f);
  // Targets and predictions below 1e-7 count as 1e-7.
  const float difference = std::log(4.0f) - std::log(2.0f);
  EXPECT_THAT(Values(MeanSquaredLogarithmicError()->PerExample(Matrix({3, 0, -1, 0}, 2), Matrix({1, -5, 0, 0}, 2))),
              Pointwise(FloatNear(1e-6f), std::vector<float>{difference * difference / 2, 0}));
}

TEST_F(LossTest, LogCoshIsFiniteFarFromTheTarget) {
  const Output zeros = Matrix({0, 0, 0}, 1);
  EXPECT_THAT(Values(LogCosh()->PerExample(zeros, Matrix({0.5f, -0.5f, 1000}, 1))),
              Pointwise(FloatNear(1e-4f), std::vector<float>{std::log(std::cosh(0.5f)), std::log(std::cosh(0.5f)),
                                                             1000 - std::log(2.0f)}));
  EXPECT_FLOAT_EQ(Values(LogCosh()->PerExample(Vector({0}), Vector({-1000})))[0], 1000 - std::log(2.0f));
}

TEST_F(LossTest, PoissonTakesTheLogarithmOfThePredictions) {
  EXPECT_THAT(
      Values(Poisson()->PerExample(Matrix({2, 0, 1, 1}, 2), Matrix({3, 1, 1, 0}, 2))),
      Pointwise(FloatNear(1e-5f), std::vector<float>{(3 - 2 * std::log(3.0f) + 1) / 2, (1 - std::log(1e-7f)) / 2}));
}

TEST_F(LossTest, HingesTakeTargetsOfBothForms) {
  const Output p = Matrix({0.5f, -0.5f, 2, 0.25f}, 2);
  const std::vector<float> plain = {(0.5f + 0.5f) / 2, (0 + 1.25f) / 2};
  const std::vector<float> squared = {(0.25f + 0.25f) / 2, (0 + 1.5625f) / 2};
  for (const Output& t : {Matrix({1, -1, 1, -1}, 2), Matrix({1, 0, 1, 0}, 2)}) {
    EXPECT_THAT(Values(Hinge()->PerExample(t, p)), Pointwise(FloatNear(1e-6f), plain));
    EXPECT_THAT(Values(SquaredHinge()->PerExample(t, p)), Pointwise(FloatNear(1e-6f), squared));
  }
  // A target that is neither 0 nor 1 keeps all targets as they are.
  EXPECT_THAT(Values(Hinge()->PerExample(Matrix({1, -1, 1, 0}, 2), p)), ElementsAre(0.5f, 0.5f));
}

TEST_F(LossTest, CosineSimilarityOfRows) {
  const Output t = Matrix({3, 4, 1, 0, 1, 1, 2, 2}, 2);
  const Output p = Matrix({6, 8, 0, 5, -2, -2, 0, 0}, 2);
  const Output loss = CosineSimilarity()->PerExample(t, p);
  const Output gradient = ToDense(Gradients({ops::Sum(loss)}, {p}).front());
  EXPECT_THAT(Values(loss), Pointwise(FloatNear(1e-6f), std::vector<float>{-1, 0, 1, 0}));
  // A row of zeros has no direction, and its gradient is a number all the same.
  for (const float slope : Values(gradient)) EXPECT_TRUE(std::isfinite(slope)) << slope;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { CosineSimilarity()->PerExample(Vector({1}), Vector({1})); }),
              AllOf(HasSubstr("[batch, ..., outputs]"), HasSubstr("[1]"), HasSubstr("add a dimension")));
}

TEST_F(LossTest, DivergenceOfDistributions) {
  const LossPtr loss = KLDivergence();
  // A target of 0 counts as 1e-7.
  EXPECT_THAT(Values(loss->PerExample(Matrix({0.5f, 0.5f, 1, 0}, 2), Matrix({0.25f, 0.75f, 0.5f, 0.5f}, 2))),
              Pointwise(FloatNear(2e-6f),
                        std::vector<float>{0.5f * std::log(2.0f) + 0.5f * std::log(2.0f / 3), std::log(2.0f)}));
  EXPECT_THROW(loss->PerExample(Matrix({1, 0, 0}, 3), Matrix({0.5f, 0.5f}, 2)), InvalidArgumentError);
}

TEST_F(LossTest, ErrorsShowTheShapesAndTheWayOut) {
  const Output p = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 10});
  const Output labels = ops::Placeholder(graph, DType::kInt32, Shape{-1});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { CategoricalCrossentropy()->PerExample(labels, p); }),
              AllOf(HasSubstr("[?,10]"), HasSubstr("use sparse_categorical_crossentropy")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { SparseCategoricalCrossentropy()->PerExample(p, p); }),
              AllOf(HasSubstr("[?,10]"), HasSubstr("use categorical_crossentropy")));
  const Output other = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 3});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { MeanSquaredError()->PerExample(other, p); }), HasSubstr("[?,3]"));
  EXPECT_THROW(CategoricalCrossentropy({.label_smoothing = 1.5}), InvalidArgumentError);
  EXPECT_THROW(Huber({.delta = 0}), InvalidArgumentError);
}

TEST_F(LossTest, LabelsOutOfRangeFailTheStepByValue) {
  const Output loss = SparseCategoricalCrossentropy()->Sums(Labels({0, 3}), Matrix({1, 0, 0, 1}, 2)).sum;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { run.Run1(loss); }), HasSubstr("3"));
}

TEST_F(LossTest, EveryNameResolvesAndAnUnknownOneListsThem) {
  for (const std::string& name : LossNames()) EXPECT_NE(LossByName(name), nullptr) << name;
  EXPECT_EQ(LossByName("mse")->name(), "mean_squared_error");
  EXPECT_EQ(LossArgument("SparseCategoricalCrossentropy").get()->name(), "sparse_categorical_crossentropy");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { LossByName("mean_square"); }),
              AllOf(HasSubstr("'mean_square'"), HasSubstr("mean_squared_error"), HasSubstr("Huber")));
}

TEST_F(LossTest, OnesOwnLoss) {
  const LossPtr loss =
      LossFromFunction("first", [](const Output& t, const Output& p) { return ops::Squeeze(p, {-1}); });
  EXPECT_FLOAT_EQ(Scalar(loss->Sums(Vector({1, 2}), Matrix({3, 5}, 1)).sum), 8.0f);
}

TEST_F(LossTest, ClassWeights) {
  const std::map<int64_t, double> weights = {{0, 0.5}, {2, 3.0}};
  EXPECT_THAT(Values(ClassWeights(weights, Labels({2, 1, 0, 7}))), ElementsAre(3, 1, 0.5f, 1));
  EXPECT_THAT(Values(ClassWeights(weights, ops::ExpandDims(Labels({2, 0}), -1))), ElementsAre(3, 0.5f));
  EXPECT_THAT(Values(ClassWeights(weights, Matrix({0, 0, 1, 1, 0, 0}, 3))), ElementsAre(3, 0.5f));
  EXPECT_THROW(ClassWeights({{-1, 2.0}}, Labels({0})), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::keras
