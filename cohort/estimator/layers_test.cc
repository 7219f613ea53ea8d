// What layers, losses and metrics refuse, and what else test_estimator.py does not see.
#include "cohort/estimator/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/estimator/v1.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"

namespace cohort::layers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LayersTest : public ::testing::Test {
 protected:
  LayersTest() { RegisterAll(); }
  Output Of(const Shape& shape, DType dtype = DType::kFloat32) { return ops::Placeholder(graph_, dtype, shape); }
  template <typename Fn>
  static std::string Message(const Fn& fn) {
    return MessageOf<InvalidArgumentError>(fn);
  }
  Graph graph_;
};

TEST_F(LayersTest, ActivationsAreNamesOrFunctions) {
  EXPECT_EQ(Dense(Of(Shape{-1, 2}), 3, {.activation = ops::Relu}).node->op_name(), "Relu");
  EXPECT_EQ(Dense(Of(Shape{-1, 2}), 3, {.activation = "relu"}).node->op_name(), "Relu");
  EXPECT_EQ(
      Dense(Of(Shape{-1, 2}), 3, {.activation = [](Output x) { return ops::LeakyRelu(x, 0.1f); }}).node->op_name(),
      "LeakyRelu");
  EXPECT_EQ(keras::ActivationFunction(ops::Relu).Serialized().AsString(), "relu");
  EXPECT_EQ(keras::ActivationFunction(ops::Relu).name(), "relu");
}

TEST_F(LayersTest, DenseKeepsTheOuterDimensions) {
  const Output x = ops::Const(graph_, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, Shape{2, 2, 2});
  const Output y = Dense(x, 1, {.kernel_initializer = initializers::Ones()});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 1}));
  Session session(graph_);
  session.Run(ops::GlobalVariablesInitializer(graph_));
  EXPECT_THAT(session.Run(y).ToVector<float>(), ElementsAre(3, 7, 11, 15));
}

TEST_F(LayersTest, WrongArgumentsAreNamed) {
  EXPECT_THAT(Message([&] { Dense(Of(Shape{-1, 2}), 0); }), HasSubstr("got 0"));
  EXPECT_THAT(Message([&] { Dense(Of(Shape{-1, -1}), 1); }), HasSubstr("the last one known"));
  EXPECT_THAT(Message([&] { Conv2D(Of(Shape{-1, 4, 4}), 1, 3); }), HasSubstr("expected inputs of 4 dimensions"));
  EXPECT_THAT(Message([&] { Conv2D(Of(Shape{-1, 4, 4, 1}), 1, 3, {.padding = "SAME"}); }), HasSubstr("\"SAME\""));
  EXPECT_THAT(Message([&] { Flatten(Of(Shape{-1, -1, 2})); }), HasSubstr("[?,?,2]"));
  EXPECT_THAT(Message([&] { BatchNormalization(Of(Shape{-1})); }), HasSubstr("at least 2 dimensions"));
}

TEST_F(LayersTest, LossesAndMetricsNameShapesThatDoNotFit) {
  EXPECT_THAT(Message([&] { losses::HuberLoss(Of(Shape{3}), Of(Shape{4})); }),
              AllOf(HasSubstr("HuberLoss"), HasSubstr("[3]"), HasSubstr("[4]")));
  EXPECT_THAT(Message([&] {
                losses::MeanSquaredError(Of(Shape{3, 2}), Of(Shape{3, 2}), {.weights = Of(Shape{3})});
              }),
              AllOf(HasSubstr("[3,2]"), HasSubstr("[3]")));
  EXPECT_THAT(Message([&] { metrics::Recall(Of(Shape{3}), Of(Shape{4})); }), HasSubstr("Recall"));
  EXPECT_THAT(Message([&] { metrics::Auc(Of(Shape{3}), Of(Shape{3}), {.num_thresholds = 1}); }), HasSubstr("got 1"));
  EXPECT_THAT(Message([&] { metrics::RecallAtThresholds(Of(Shape{3}), Of(Shape{3}), {}); }), HasSubstr("threshold"));
  EXPECT_THAT(Message([&] { losses::GetTotalLoss(graph_); }), HasSubstr("there is none"));
}

TEST_F(LayersTest, WeightsOfMetricsGetTheRankOfTheValues) {
  const Output labels = ops::Const(graph_, std::vector<float>{1, 2}, Shape{2});
  const Output predictions = ops::Const(graph_, std::vector<float>{2, 6}, Shape{2, 1});
  const metrics::Metric squeezed =
      metrics::MeanAbsoluteError(labels, predictions, ops::Const(graph_, std::vector<float>{1, 2}, Shape{2, 1}));
  const metrics::Metric expanded = metrics::Mean(predictions, ops::Const(graph_, std::vector<float>{3, 1}, Shape{2}));
  Session session(graph_);
  session.Run(ops::LocalVariablesInitializer(graph_));
  session.Run({}, {}, {squeezed.update, expanded.update});
  EXPECT_FLOAT_EQ(session.Run(squeezed.value).scalar<float>(), (1.0f + 2 * 4) / 3);
  EXPECT_FLOAT_EQ(session.Run(expanded.value).scalar<float>(), (3 * 2.0f + 6) / 4);
}

// [2, 1] weights beside [2] losses would give four products.
TEST_F(LayersTest, WeightsOfUnknownRankDoNotBroadcastTheValues) {
  const Output x = ops::Const(graph_, std::vector<float>{1, 2}, Shape{2});
  const Output weights = Of(Shape::UnknownRank());
  const Output loss = losses::AbsoluteDifference(x, ops::ZerosLike(x), {.weights = weights});
  Session session(graph_);
  const auto run = [&](const Tensor& value) { return session.Run({{weights, value}}, {loss})[0].scalar<float>(); };
  EXPECT_FLOAT_EQ(run(Tensor::Vector<float>({3, 0})), 3.0f);
  EXPECT_FLOAT_EQ(run(Tensor::Scalar(2.0f)), 3.0f);
  EXPECT_THAT(Message([&] { run(Tensor::FromValues<float>({1, 2}, Shape{2, 1})); }), HasSubstr("[2,1]"));
}

TEST_F(LayersTest, TheTotalLossHasThoseOfWeights) {
  const Output x = ops::Const(graph_, std::vector<float>{1, 2}, Shape{1, 2});
  const Regularizer regularizer = [](Output w) { return 0.5f * ops::L2Loss(w); };
  const Output y = Dense(x, 1, {.kernel_initializer = initializers::Ones(), .kernel_regularizer = regularizer});
  losses::MeanSquaredError(ops::Const(graph_, std::vector<float>{1}, Shape{1, 1}), y);
  losses::MeanSquaredError(ops::Const(graph_, std::vector<float>{1}, Shape{1, 1}), y, {.loss_collection = ""});
  const Output total = losses::GetTotalLoss(graph_), data = losses::GetTotalLoss(graph_, false);
  const Output weights = losses::GetRegularizationLoss(graph_);
  Session session(graph_);
  session.Run(ops::GlobalVariablesInitializer(graph_));
  const auto values = session.Run({total, data, weights});
  EXPECT_FLOAT_EQ(values[0].scalar<float>(), 4.5f);
  EXPECT_FLOAT_EQ(values[1].scalar<float>(), 4.0f);
  EXPECT_FLOAT_EQ(values[2].scalar<float>(), 0.5f);
}

}  // namespace
}  // namespace cohort::layers
