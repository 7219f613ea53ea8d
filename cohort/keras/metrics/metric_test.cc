// Metrics: choice by shape, states that add up, errors. tests/interop compares their values with Keras.
#include "cohort/keras/metrics/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "tests/ops/interpreter.h"

namespace cohort::keras {
namespace {

using ::cohort::testing::Interpreter;
using ::testing::AllOf;
using ::testing::HasSubstr;

class MetricTest : public ::testing::Test {
 protected:
  Output Matrix(const std::vector<float>& values, int64_t columns) {
    return ops::Const(graph, values, Shape{static_cast<int64_t>(values.size()) / columns, columns});
  }
  Output Labels(const std::vector<int64_t>& values) { return ops::Const(graph, values); }
  double Value(Output value) { return run.Run1(value).scalar<double>(); }
  double Of(const MetricPtr& metric, Output t, Output p, Output weights = {}) {
    return Value(metric->Result(metric->Increments(t, p, weights)));
  }

  Graph graph;
  Interpreter run;
};

TEST_F(MetricTest, AccuracyFollowsTheShapes) {
  const auto right = [&](const std::string& name, Output t, Output p) {
    const MetricPtr metric = MetricArgument(name).Resolve(t.shape(), p.shape());
    EXPECT_EQ(metric->name(), name);
    EXPECT_EQ(metric->direction(), MetricDirection::kUp);
    return Of(metric, t, p);
  };
  EXPECT_EQ(right("accuracy", Matrix({1, 0}, 1), Matrix({0.9f, 0.7f}, 1)), 0.5);
  EXPECT_EQ(right("acc", Labels({1, 0, 1, 1}), Matrix({0.9f, 0.7f, 0.6f, 0.6f}, 1)), 0.75);
  const Output p = Matrix({0.1f, 0.8f, 0.1f, 0.6f, 0.3f, 0.1f}, 3);
  EXPECT_EQ(right("accuracy", Labels({1, 2}), p), 0.5);
  EXPECT_EQ(right("accuracy", Matrix({1, 0}, 1), p), 1.0);
  EXPECT_EQ(right("accuracy", Matrix({0, 1, 0, 0, 1, 0}, 3), p), 0.5);
}

TEST_F(MetricTest, StatesOfPartsAddUpToTheWhole) {
  const std::vector<float> p = {0.9f, 0.2f, 0.3f, 0.75f, 0.6f, 0.4f, 0.35f};
  const std::vector<float> t = {1, 0, 1, 1, 0, 0, 1};
  for (const MetricPtr& metric :
       {AUC(), BinaryAccuracy(), MetricByName("mse", Shape{-1, 1}, Shape{-1, 1}), Precision(), Recall(),
        RootMeanSquaredError(), AUC({.curve = keras::Curve::kPr, .thresholds = {0.5, 0.25}})}) {
    std::vector<Output> sums;
    for (const auto& range : {std::pair(0, 2), std::pair(2, 3), std::pair(3, 7)}) {
      const auto part = [&, from = range.first, to = range.second](const std::vector<float>& all) {
        return Matrix(std::vector<float>(all.begin() + from, all.begin() + to), 1);
      };
      const std::vector<Output> increments = metric->Increments(part(t), part(p), {});
      for (size_t i = 0; i < increments.size(); ++i) {
        sums.resize(increments.size());
        sums[i] = range.first == 0 ? increments[i] : ops::Add(sums[i], increments[i]);
      }
    }
    EXPECT_NEAR(Value(metric->Result(sums)), Of(metric, Matrix(t, 1), Matrix(p, 1)), 1e-7) << metric->name();
  }
}

TEST_F(MetricTest, UpdateGrowsTheVariables) {
  const MetricPtr metric = SparseCategoricalAccuracy();
  std::vector<ops::Variable> states;
  for (const MetricState& state : metric->States()) {
    states.emplace_back(graph, Tensor::Zeros(state.dtype, state.shape), ops::VariableOptions{.name = state.name});
  }
  Node* update =
      metric->Update(states, Labels({1, 0}), Matrix({0, 1, 0, 1}, 2), ops::Const(graph, std::vector<float>{3, 1}));
  const Output result = metric->Result({states[0].value(), states[1].value()});
  run.RunNode(ops::GlobalVariablesInitializer(graph));
  EXPECT_EQ(Value(result), 0.0);
  for (int i = 0; i < 2; ++i) run.RunNode(update);
  EXPECT_EQ(Value(result), 0.75);
  EXPECT_EQ(Value(states[1]), 8.0);
  EXPECT_THROW(metric->Update({states[0]}, Labels({1}), Matrix({0, 1}, 2)), InvalidArgumentError);
}

TEST_F(MetricTest, TopKOfSequences) {
  const Output p = ops::Const(graph, std::vector<float>{3, 2, 1, 1, 2, 3, 2, 3, 1, 1, 3, 2}, Shape{2, 2, 3});
  const Output t = ops::Const(graph, std::vector<int32_t>{0, 0, 0, 0}, Shape{2, 2});
  EXPECT_EQ(Of(SparseTopKCategoricalAccuracy(2), t, p), 0.5);
  EXPECT_THROW(TopKCategoricalAccuracy(0), InvalidArgumentError);
}

TEST_F(MetricTest, MeanWeighsItsValues) {
  const Output values = ops::Const(graph, std::vector<float>{1, 5});
  EXPECT_EQ(Of(Mean(), {}, values), 3.0);
  EXPECT_EQ(Of(Mean(), {}, values, ops::Const(graph, std::vector<float>{3, 1})), 2.0);
}

TEST_F(MetricTest, PrecisionAndRecallCountAtTheThreshold) {
  // A prediction at the threshold is negative. Any label but 0 is positive.
  const Output t = Matrix({1, 0, 1, 1, 0, 2}, 2), p = Matrix({0.9f, 0.7f, 0.5f, 0.6f, 0.4f, 0.1f}, 2);
  EXPECT_EQ(Precision()->name(), "precision");
  EXPECT_EQ(Recall({.name = "r"})->name(), "r");
  EXPECT_EQ(Recall()->direction(), MetricDirection::kUp);
  EXPECT_NEAR(Of(Precision(), t, p), 2.0 / 3, 1e-12);
  EXPECT_EQ(Of(Recall(), t, p), 0.5);
  EXPECT_EQ(Of(Precision({.thresholds = 0.3}), t, p), 0.6);
  EXPECT_EQ(Of(Recall({.thresholds = 0}), t, p), 1.0);
  EXPECT_EQ(Of(Precision({.thresholds = 1}), t, p), 0.0);
  // Weights of examples: true positives 1 and 2, a false positive 1, false negatives 2 and 3.
  const Output weights = ops::Const(graph, std::vector<float>{1, 2, 3});
  EXPECT_EQ(Of(Precision(), t, p, weights), 0.75);
  EXPECT_EQ(Of(Recall(), t, p, weights), 0.375);
  // One class.
  EXPECT_EQ(Of(Precision({.class_id = 0}), t, p), 1.0);
  EXPECT_EQ(Of(Precision({.class_id = 1}), t, p), 0.5);
  EXPECT_EQ(Of(Recall({.class_id = 1}), t, p, weights), 0.4);
  EXPECT_EQ(Of(Recall(), Labels({1, 0}), Matrix({0.9f, 0.9f}, 1)), 1.0);
}

TEST_F(MetricTest, PrecisionAndRecallSayWhatDoesNotFit) {
  const auto message = [&](const ConfusionOptions& options, Output t) {
    return MessageOf<InvalidArgumentError>([&] { Of(Recall(options), t, Matrix({1, 0, 0, 1, 0, 0}, 3)); });
  };
  EXPECT_THAT(message({}, Labels({0, 2})),
              AllOf(HasSubstr("'recall'"), HasSubstr("[2]"), HasSubstr("[2,3]"), HasSubstr("one-hot")));
  EXPECT_THAT(message({.class_id = 3}, Matrix({1, 0, 0, 1, 0, 0}, 3)),
              AllOf(HasSubstr("class_id 3"), HasSubstr("[2,3]")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { Of(Precision({.class_id = 0}), Labels({1}), ops::Const(graph, std::vector<float>{1})); }),
              HasSubstr("[batch, ..., classes]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Precision({.thresholds = 1.5}); }), HasSubstr("1.5"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Precision({.class_id = -2}); }), HasSubstr("-2"));
}

TEST_F(MetricTest, RootOfTheMeanOfSquares) {
  const MetricPtr metric = RootMeanSquaredError();
  EXPECT_EQ(metric->direction(), MetricDirection::kDown);
  const Output t = Matrix({1, 2, 3, 4}, 2), p = Matrix({1, 4, 3, 0}, 2);
  EXPECT_NEAR(Of(metric, t, p), std::sqrt(5.0), 1e-12);
  EXPECT_NEAR(Of(metric, t, p, ops::Const(graph, std::vector<float>{3, 1})), std::sqrt(3.5), 1e-12);
  EXPECT_EQ(Of(metric, Labels({1, 2}), Matrix({3, 4}, 1)), 2.0);
  EXPECT_THROW(metric->Increments(t, Matrix({1, 2, 3}, 3), {}), InvalidArgumentError);
}

// The loss has the other sign.
TEST_F(MetricTest, CosineSimilarityIsLargeForTheSameDirection) {
  const MetricPtr metric = MetricByName("cosine_similarity", Shape{-1, 2}, Shape{-1, 2});
  EXPECT_EQ(metric->direction(), MetricDirection::kUp);
  EXPECT_NEAR(Of(metric, Matrix({3, 4, 1, 0}, 2), Matrix({6, 8, 0, 1}, 2)), 0.5, 1e-6);
  EXPECT_EQ(MetricByName("poisson", Shape{-1, 2}, Shape{-1, 2})->direction(), MetricDirection::kDown);
}

TEST_F(MetricTest, AucOfAPerfectAndOfAnInverseClassifier) {
  const Output t = Matrix({0, 0, 1, 1}, 1);
  EXPECT_NEAR(Of(AUC(), t, Matrix({0.1f, 0.2f, 0.8f, 0.9f}, 1)), 1.0, 1e-6);
  EXPECT_NEAR(Of(AUC(), t, Matrix({0.9f, 0.8f, 0.2f, 0.1f}, 1)), 0.0, 1e-6);
  EXPECT_EQ(Of(AUC(), t, Matrix({0, 0, 1, 1}, 1)), 1.0);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Of(AUC(), t, Matrix({0.1f, 0.2f, 0.8f, 1.5f}, 1));
              }),
              AllOf(HasSubstr("'auc' expected predictions in [0, 1]"), HasSubstr("from_logits")));
  EXPECT_THROW(AUC({.num_thresholds = 1}), InvalidArgumentError);
  EXPECT_THROW(AUC({.thresholds = {0.5, 1.5}}), InvalidArgumentError);
}

TEST_F(MetricTest, EveryNameResolvesAndAnUnknownOneListsThem) {
  for (const std::string& name : MetricNames()) {
    EXPECT_EQ(MetricByName(name, Shape{-1}, Shape{-1, 10})->name(), name);
  }
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { MetricArgument("acuracy"); }),
              AllOf(HasSubstr("'acuracy'"), HasSubstr("accuracy"), HasSubstr("AUC"), HasSubstr("mse")));
  EXPECT_THROW(MetricByName("accuracy", Shape{-1}, Shape::UnknownRank()), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::keras
