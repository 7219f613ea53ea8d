// Metrics of classes on numbers worked out by hand: counts, operating points, F scores, IoU; and R2Score.
// tests/interop compares them with Keras on random ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/model.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "tests/ops/interpreter.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ClassificationMetricTest : public ::testing::Test {
 protected:
  Output Matrix(const std::vector<float>& values, int64_t columns) {
    return ops::Const(graph, values, Shape{static_cast<int64_t>(values.size()) / columns, columns});
  }
  Output Labels(const std::vector<int64_t>& values) { return ops::Const(graph, values); }
  double Of(const MetricPtr& metric, Output t, Output p, Output weights = {}) {
    return run.Run1(metric->Result(metric->Increments(t, p, weights))).scalar<double>();
  }

  Graph graph;
  ::cohort::testing::Interpreter run;
};

TEST_F(ClassificationMetricTest, CountsOfTheConfusionMatrix) {
  const Output t = Matrix({1, 1, 0, 0, 1}, 1), p = Matrix({0.9f, 0.5f, 0.6f, 0.1f, 0.7f}, 1);
  const Output weights = ops::Const(graph, std::vector<float>{1, 2, 4, 8, 16});
  EXPECT_EQ(Of(TruePositives(), t, p), 2);  // 0.5 is not above 0.5
  EXPECT_EQ(Of(TruePositives(), t, p, weights), 17);
  EXPECT_EQ(Of(FalseNegatives(), t, p, weights), 2);
  EXPECT_EQ(Of(FalsePositives(), t, p, weights), 4);
  EXPECT_EQ(Of(TrueNegatives(), t, p, weights), 8);
  EXPECT_EQ(Of(FalsePositives({.thresholds = 0.65}), t, p), 0);
  EXPECT_EQ(TrueNegatives()->name(), "true_negatives");
}

TEST_F(ClassificationMetricTest, OperatingPoints) {
  // Sorted by prediction the labels are 0 1 0 1 1.
  const Output t = Matrix({0, 1, 0, 1, 1}, 1), p = Matrix({0, 0.3f, 0.5f, 0.7f, 1}, 1);
  EXPECT_DOUBLE_EQ(Of(PrecisionAtRecall(0.6), t, p), 1);
  EXPECT_DOUBLE_EQ(Of(PrecisionAtRecall(1), t, p), 0.75);
  EXPECT_DOUBLE_EQ(Of(RecallAtPrecision(0.9), t, p), 2.0 / 3);
  EXPECT_DOUBLE_EQ(Of(SensitivityAtSpecificity(0.5), t, p), 1);
  EXPECT_DOUBLE_EQ(Of(SensitivityAtSpecificity(1), t, p), 2.0 / 3);
  EXPECT_DOUBLE_EQ(Of(SpecificityAtSensitivity(0.9), t, p), 0.5);  // the prediction 0 is above no threshold
  EXPECT_DOUBLE_EQ(Of(PrecisionAtRecall(0.6, {.num_thresholds = 1}), t, p), 1);
  EXPECT_DOUBLE_EQ(Of(PrecisionAtRecall(0.9, {.num_thresholds = 1}), t, p), 0);  // no such threshold
  EXPECT_THROW(Of(PrecisionAtRecall(0.5), t, Matrix({0, 1, 2, 1, 1}, 1)), InvalidArgumentError);
}

TEST_F(ClassificationMetricTest, FScores) {
  const Output t = Matrix({1, 0, 1, 0, 0, 1}, 2), p = Matrix({0.8f, 0.2f, 0.3f, 0.6f, 0.1f, 0.9f}, 2);
  // Class 0: one found, one missed. Class 1: one found, one wrong.
  const double f = 2 * 1 * 0.5 / 1.5;
  EXPECT_NEAR(Of(F1Score({.average = "macro"}), t, p), f, 1e-6);
  EXPECT_NEAR(Of(F1Score({.average = "micro"}), t, p), 2.0 / 3, 1e-6);
  const double f2_0 = 5 * 1 * 0.5 / (4 + 0.5), f2_1 = 5 * 0.5 * 1 / (2 + 1);
  EXPECT_NEAR(Of(FBetaScore({.average = "macro", .beta = 2}), t, p), (f2_0 + f2_1) / 2, 1e-6);
  EXPECT_NEAR(Of(FBetaScore({.average = "weighted", .beta = 2}), t, p), (2 * f2_0 + f2_1) / 3, 1e-6);
  EXPECT_NEAR(Of(F1Score({.average = "micro", .threshold = 0.7}), t, p), 2 * 1 * (2.0 / 3) / (5.0 / 3), 1e-6);
  // A row of zeros has no positive prediction.
  EXPECT_EQ(Of(F1Score({.average = "micro"}), t, ops::ZerosLike(p)), 0);
  EXPECT_EQ(F1Score({.average = "macro"})->StatesFor(t.shape(), p.shape())[0].shape, Shape{2});
  EXPECT_EQ(F1Score({.average = "micro"})->StatesFor(t.shape(), p.shape())[0].shape, Shape());
}

TEST_F(ClassificationMetricTest, IntersectionOverUnion) {
  const Output t = Labels({0, 0, 1, 1, 3}), p = Labels({0, 1, 1, 1, 0});
  EXPECT_NEAR(Of(IoU(3, {0}), t, p), 0.5, 1e-6);  // the label 3 is no class, so the last element is left out
  EXPECT_NEAR(Of(IoU(4, {0}), t, p), 1.0 / 3, 1e-6);
  EXPECT_NEAR(Of(MeanIoU(4), t, p), (1.0 / 3 + 2.0 / 3 + 0) / 3, 1e-6);  // class 2 does not occur
  EXPECT_NEAR(Of(MeanIoU(4, {.ignore_class = 3}), t, p), (0.5 + 2.0 / 3) / 2, 1e-6);
  EXPECT_NEAR(Of(IoU(4, {0}), t, p, ops::Const(graph, std::vector<float>{1, 0.5, 1, 1, 0})), 1 / 1.5, 1e-6);
  const Output one_hot = Matrix({1, 0, 0, 1}, 2), scores = Matrix({0.6f, 0.4f, 0.7f, 0.3f}, 2);
  EXPECT_NEAR(Of(OneHotIoU(2, {0}), one_hot, scores), 0.5, 1e-6);
  EXPECT_NEAR(Of(OneHotMeanIoU(2), one_hot, scores), 0.25, 1e-6);
  EXPECT_NEAR(Of(BinaryIoU(), Matrix({0, 1, 1}, 1), Matrix({0.1f, 0.5f, 0.4f}, 1)), 0.5, 1e-6);
  EXPECT_EQ(Of(MeanIoU(2), Labels({5}), Labels({0})), 0);
}

TEST_F(ClassificationMetricTest, CoefficientOfDetermination) {
  const Output t = Matrix({1, 10, 2, 10, 3, 10, 6, 10}, 2), p = Matrix({1, 9, 2, 10, 4, 10, 6, 10}, 2);
  const double score = 1 - 1.0 / 14;
  EXPECT_NEAR(Of(R2Score(), t, p), score / 2, 1e-9);  // the second output has equal targets
  EXPECT_NEAR(Of(R2Score({.class_aggregation = "variance_weighted_average"}), t, p), score, 1e-9);
  EXPECT_NEAR(Of(R2Score({.class_aggregation = "variance_weighted_average", .num_regressors = 2}), t, p),
              1 - (1 - score) * 7 / 5, 1e-9);
  EXPECT_NEAR(Of(R2Score({.num_regressors = 7}), t, p), score / 2, 1e-9);  // too few targets to adjust
  EXPECT_EQ(Of(R2Score(), Matrix(std::vector<float>(1000, 0.1f), 1), Matrix(std::vector<float>(1000, 0.3f), 1)), 0);
}

TEST_F(ClassificationMetricTest, NothingCountedIsZero) {
  const Shape shape{-1, 3};
  for (const MetricPtr& metric :
       {TruePositives(), PrecisionAtRecall(0.5), SpecificityAtSensitivity(0.5), F1Score({.average = "macro"}),
        FBetaScore({.average = "weighted"}), MeanIoU(3), BinaryIoU(), R2Score({.num_regressors = 1}),
        R2Score({.class_aggregation = "variance_weighted_average"})}) {
    std::vector<Output> zeros;
    for (const MetricState& state : metric->StatesFor(shape, shape)) {
      zeros.push_back(ops::Const(graph, Tensor::Zeros(state.dtype, state.shape)));
    }
    EXPECT_EQ(run.Run1(metric->Result(zeros)).scalar<double>(), 0) << metric->name();
  }
}

TEST_F(ClassificationMetricTest, WhatIsOutOfRangeIsNamed) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { F1Score({}); }),
              AllOf(HasSubstr("F1Score"), HasSubstr("micro, macro or weighted"), HasSubstr("each class")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { F1Score({.average = "macro", .beta = 2}); }),
              HasSubstr("FBetaScore"));
  EXPECT_THROW(FBetaScore({.average = "macro", .beta = 0}), InvalidArgumentError);
  EXPECT_THROW(FBetaScore({.average = "macro", .threshold = 0}), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { R2Score({.class_aggregation = ""}); }),
              HasSubstr("uniform_average"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { IoU(3, {0, 3}); }), HasSubstr("{0, 3}"));
  EXPECT_THROW(MeanIoU(0), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { PrecisionAtRecall(1.5); }), HasSubstr("recall in [0, 1]"));
  EXPECT_THROW(RecallAtPrecision(0.5, {.num_thresholds = 0}), InvalidArgumentError);
  EXPECT_THROW(TruePositives({.thresholds = 2}), InvalidArgumentError);
  const Output t = Labels({0, 1}), p = Matrix({1, 2, 3, 4}, 2);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { MeanIoU(2)->Increments(t, p, {}); }), HasSubstr("sparse_y_pred"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { R2Score()->StatesFor(t.shape(), p.shape()); }),
              HasSubstr("r2_score"));
}

// The model makes states for as many classes as the outputs have.
TEST(ClassificationMetricModelTest, AModelHasThem) {
  Sequential model({Input(Shape{2}), Dense(3, {.activation = "softmax"})});
  model.Compile({.optimizer = "sgd",
                 .loss = "categorical_focal_crossentropy",
                 .metrics = {F1Score({.average = "macro"}), OneHotMeanIoU(3), "true_positives", "r2_score",
                             PrecisionAtRecall(0.5)}});
  const Tensor x = Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{3, 2});
  const Tensor y = Tensor::FromValues<float>({1, 0, 0, 0, 1, 0, 0, 0, 1}, Shape{3, 3});
  const Logs logs = model.Evaluate(x, y, {.verbose = 0});
  ASSERT_EQ(logs.size(), 6u);
  EXPECT_EQ(logs[1].first, "f1_score");
  EXPECT_EQ(logs[5].first, "precision_at_recall");
}

}  // namespace
}  // namespace cohort::keras
