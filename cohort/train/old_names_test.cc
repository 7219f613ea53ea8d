// The graph of guide-000, with the names of TensorFlow 0.x: mul, placeholders without a shape, scalar_summary,
// merge_all_summaries, initialize_all_variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/initializers.h"
#include "cohort/ops/math.h"
#include "cohort/ops/summary.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"
#include "cohort/summary/summary.h"
#include "cohort/train/optimizer.h"

namespace cohort::train {
namespace {

TEST(OldNamesTest, TheGraphOfAProgramForTensorFlow0Trains) {
  Graph graph;
  const ops::Variable global_step = ops::GetOrCreateGlobalStep(graph);
  const Output input = ops::Placeholder(graph, DType::kFloat32);
  const Output label = ops::Placeholder(graph, DType::kFloat32);
  const auto random = initializers::RandomNormal();
  const ops::Variable weight = ops::GetVariable(graph, "weight", Shape{1}, DType::kFloat32, random);
  const ops::Variable biase = ops::GetVariable(graph, "biase", Shape{1}, DType::kFloat32, random);
  const Output loss = ops::SquaredDifference(label, ops::Mul(input, weight) + biase);
  GradientDescentOptimizer optimizer(0.1);
  Node* train = optimizer.Minimize(loss, global_step);
  Node* init = ops::InitializeAllVariables(graph);
  // The loss of one example has the shape [1], and a summary takes a scalar.
  ops::ScalarSummary("cost", ops::Sum(loss));
  const Output summary = ops::MergeAllSummaries(graph);

  Session session(graph);
  session.Run({}, {}, {init});
  for (int i = 0; i < 200; ++i) {
    const float x = static_cast<float>(i % 5) - 2;
    session.Run({{input, Tensor::Vector<float>({x})}, {label, Tensor::Vector<float>({2 * x + 10})}}, {}, {train});
  }
  EXPECT_NEAR(session.Run(weight.value()).data<float>()[0], 2, 1e-3);
  EXPECT_NEAR(session.Run(biase.value()).data<float>()[0], 10, 1e-3);
  EXPECT_EQ(session.Run(global_step.value()).scalar<int64_t>(), 200);
  // The result is exact up to rounding, and the summary has its cost.
  const Tensor x = Tensor::Vector<float>({1}), y = Tensor::Vector<float>({12});
  const RunResults results = session.Run({{input, x}, {label, y}}, {summary, loss});
  EXPECT_EQ(results[0].scalar<std::string>(), MergeSummaries({ScalarSummary("cost", results[1].data<float>()[0])}));
}

TEST(OldNamesTest, InitializeAllVariablesIsTheInitializerOfToday) {
  Graph graph;
  const ops::Variable variable(graph, Tensor::Scalar(3.0f), {.name = "v"});
  const Node* node = ops::InitializeAllVariables(graph);
  EXPECT_EQ(node->name(), "init");
  EXPECT_EQ(node->op().name(), ops::GlobalVariablesInitializer(graph)->op().name());
}

}  // namespace
}  // namespace cohort::train
