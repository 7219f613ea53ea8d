#include "cohort/train/moving_averages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <optional>

#include "cohort/checkpoint/saver.h"
#include "cohort/cluster/cluster_node.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"
#include "cohort/train/device_setter.h"
#include "cohort/train/monitored_session.h"
#include "cohort/train/sync_replicas_optimizer.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::train {
namespace {

using cohort::testing::LocalCluster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

class MovingAverageTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { RegisterAll(); }

  ops::Variable Make(const std::string& name, float value) {
    return ops::Variable(graph_, Tensor::Scalar(value), {.name = name});
  }

  Graph graph_;
};

TEST_F(MovingAverageTest, AShadowFollowsItsVariableAfterTheUpdate) {
  const ops::Variable w = Make("w", 2.0f);
  Node* add = w.AssignAdd(1.0f);
  ExponentialMovingAverage ema(0.75);
  Node* update = nullptr;
  {
    const ControlDependencies after(graph_, {add});
    update = ema.Apply({w});
  }
  const ops::Variable shadow = ema.average(w);
  EXPECT_EQ(shadow.name(), "w/ExponentialMovingAverage");
  EXPECT_EQ(ema.average_name(w), shadow.name());
  EXPECT_FALSE(shadow.trainable());
  EXPECT_FALSE(shadow.info()->local);
  Session session(graph_);
  session.Run(ops::GlobalVariablesInitializer(graph_));
  float expected = 2.0f;
  EXPECT_EQ(session.Run(shadow).scalar<float>(), expected);
  for (int step = 1; step <= 3; ++step) {
    session.Run(update);
    expected -= 0.25f * (expected - (2.0f + static_cast<float>(step)));
    EXPECT_EQ(session.Run(shadow).scalar<float>(), expected);
  }
  session.Run(shadow.initializer());
  EXPECT_EQ(session.Run(shadow).scalar<float>(), 5.0f) << "a new average begins with the variable's present value";
  EXPECT_EQ(ema.Apply(graph_)->graph().variables().size(), 2u) << "the shadow exists";
}

TEST_F(MovingAverageTest, TheNumberOfUpdatesLowersTheDecay) {
  const ops::Variable w = Make("w", 1.0f);
  const ops::Variable step = ops::GetOrCreateGlobalStep(graph_);
  ExponentialMovingAverage ema(0.5, step, false, "average");
  Node* update = ema.Apply({w});
  const Output target = ops::Placeholder(graph_, DType::kFloat32, Shape());
  const Output number = ops::Placeholder(graph_, DType::kInt64, Shape());
  Node* set = w.Assign(target);
  Node* set_step = step.Assign(number);
  Session session(graph_);
  session.Run(ops::GlobalVariablesInitializer(graph_));
  EXPECT_EQ(ema.average(w).name(), "w/average");
  float expected = 1.0f;
  for (const int64_t n : {0, 2, 100}) {
    session.Run({{target, Tensor::Scalar(3.0f)}, {number, Tensor::Scalar(n)}}, {}, {set, set_step});
    session.Run(update);
    const auto count = static_cast<float>(n);
    expected -= (1.0f - std::min(0.5f, (1.0f + count) / (10.0f + count))) * (expected - 3.0f);
    EXPECT_FLOAT_EQ(session.Run(ema.average(w)).scalar<float>(), expected);
  }
}

TEST_F(MovingAverageTest, AnAverageOfValuesBeginsWithZeroAndMayBeCorrected) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{2}, "x");
  const Output y = ops::Mul(x, 2.0f, "y");
  ExponentialMovingAverage plain(0.9, {}, false, "plain");
  ExponentialMovingAverage corrected(ops::Const(graph_, 0.9f), {}, true, "corrected");
  Node* update = plain.ApplyToValues({y});
  Node* correct = corrected.ApplyToValues({y});
  EXPECT_EQ(corrected.average(y).name(), "y/corrected");
  Session session(graph_);
  session.Run(ops::GlobalVariablesInitializer(graph_));
  for (int step = 1; step <= 4; ++step) {
    session.Run({{x, Tensor::Vector<float>({1, -2})}}, {}, {update, correct});
    const auto biased = static_cast<float>(1.0 - std::pow(0.9, step));
    EXPECT_THAT(session.Run(plain.average(y)).ToVector<float>(),
                ElementsAre(::testing::FloatNear(2 * biased, 1e-6f), ::testing::FloatNear(-4 * biased, 1e-6f)));
    EXPECT_THAT(session.Run(corrected.average(y)).ToVector<float>(),
                ElementsAre(::testing::FloatNear(2, 1e-5f), ::testing::FloatNear(-4, 1e-5f)));
  }
}

TEST_F(MovingAverageTest, ASaverPutsTheAveragesIntoTheVariables) {
  const testing::TempFolder folder;
  const ops::Variable w = Make("w", 1.0f);
  const ops::Variable frozen(graph_, Tensor::Scalar(7.0f), {.name = "frozen", .trainable = false});
  Node* add = w.AssignAdd(4.0f);
  ExponentialMovingAverage ema(0.5);
  Node* update = ema.Apply({w});
  Saver saver(graph_);
  Session session(graph_);
  session.Run(ops::GlobalVariablesInitializer(graph_));
  session.Run(add);
  session.Run(update);
  const std::string prefix = saver.Save(session, folder / "model");

  Graph evaluation;
  const ops::Variable w2(evaluation, Tensor::Scalar(0.0f), {.name = "w"});
  const ops::Variable frozen2(evaluation, Tensor::Scalar(0.0f), {.name = "frozen", .trainable = false});
  const ExponentialMovingAverage names(0.5);
  const std::map<std::string, ops::Variable> list = names.variables_to_restore(evaluation);
  EXPECT_THAT(list, ElementsAre(Key("frozen"), Key("w/ExponentialMovingAverage")));
  Saver restorer(evaluation, {.names = list});
  Session other(evaluation);
  restorer.Restore(other, prefix);
  EXPECT_EQ(other.Run(w2).scalar<float>(), 3.0f);
  EXPECT_EQ(other.Run(frozen2).scalar<float>(), 7.0f);
  EXPECT_THAT(ema.variables_to_restore(graph_), ElementsAre(Key("frozen"), Key("w/ExponentialMovingAverage")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Saver(evaluation, {.var_list = {w2}, .names = list}); }),
              HasSubstr("either var_list or names"));
}

// A checkpoint has the average of a variable in parts as one tensor, as it has the variable.
TEST_F(MovingAverageTest, TheAveragesOfPartsAreOneTensorInFiles) {
  const testing::TempFolder folder;
  const auto parts_in = [](Graph& graph) {
    std::vector<ops::Variable> parts;
    for (const int part : {0, 1}) {
      const auto first = static_cast<float>(2 * part + 1);
      parts.emplace_back(graph, Tensor::Vector<float>({first, first + 1}),
                         ops::VariableOptions{.name = StrCat("w/part_", part)});
      parts.back().info()->rows_of = {"w", Shape{4}, 2 * part};
    }
    return parts;
  };
  const std::vector<ops::Variable> parts = parts_in(graph_);
  ExponentialMovingAverage ema(0.5);
  Node* update = ema.Apply(parts);
  Node* add = parts[1].AssignAdd(ops::Const(graph_, std::vector<float>{2, 4}));
  Saver saver(graph_);
  Session session(graph_);
  session.Run(ops::GlobalVariablesInitializer(graph_));
  session.Run(add);
  session.Run(update);
  const std::string prefix = saver.Save(session, folder / "model");

  Graph whole;
  const ops::Variable w(whole, Tensor::Vector<float>({0, 0, 0, 0}), {.name = "w"});
  const ExponentialMovingAverage names(0.5);
  Saver of_whole(whole, {.names = names.variables_to_restore(whole)});
  Session one(whole);
  of_whole.Restore(one, prefix);
  EXPECT_THAT(one.Run(w).ToVector<float>(), ElementsAre(1, 2, 4, 6));

  Graph divided;
  const std::vector<ops::Variable> others = parts_in(divided);
  Saver of_parts(divided, {.names = names.variables_to_restore(divided)});
  Session two(divided);
  of_parts.Restore(two, prefix);
  EXPECT_THAT(two.Run(others[1]).ToVector<float>(), ElementsAre(4, 6));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Saver(divided, {.names = {{"v", others[1]}}});
              }),
              HasSubstr("begins with 'w/part_1'"));
}

TEST_F(MovingAverageTest, WrongUsesAreNamed) {
  ExponentialMovingAverage ema(0.5);
  const ops::Variable count(graph_, Tensor::Scalar(int32_t{1}), {.name = "count", .trainable = false});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ema.Apply({count}); }), HasSubstr("'count' is int32"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ema.Apply(graph_); }), HasSubstr("got none"));
  EXPECT_FALSE(ema.average(count).valid());
  const Output unknown = ops::Placeholder(graph_, DType::kFloat32, Shape{-1}, "unknown");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ema.ApplyToValues({unknown}); }), HasSubstr("'unknown'"));
  GradientDescentOptimizer sgd(0.5);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { SyncReplicasOptimizer(sgd, {.variables_to_average = {count}}); }),
              HasSubstr("only together with variable_averages"));
}

TEST_F(MovingAverageTest, OnParameterServersTheUpdateRunsBesideTheVariable) {
  const DeviceScope scope(graph_, ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:3"}));
  const ops::Variable a = Make("a", 1.0f), b = Make("b", 1.0f);
  ExponentialMovingAverage ema(0.9);
  ema.Apply({a, b});
  EXPECT_EQ(ema.average(a).handle().node->device(), "/job:ps/task:0");
  EXPECT_EQ(ema.average(b).handle().node->device(), "/job:ps/task:1");
  int updates = 0;
  for (const Node* node : graph_.nodes()) {
    if (node->op_name() != "AssignSubVariableOp") continue;
    ++updates;
    for (const Output& input : node->inputs()) EXPECT_EQ(input.node->device(), node->device());
  }
  EXPECT_EQ(updates, 2);
}

// The gradient of w is the fed x.
struct AveragingWorker {
  AveragingWorker(LocalCluster& cluster, int index, int staleness) {
    const DeviceScope scope(
        graph, ReplicaDeviceSetter({.worker_device = StrCat("/job:worker/task:", index), .cluster = cluster.spec()}));
    const ops::Variable step = ops::GetOrCreateGlobalStep(graph);
    w = ops::GetVariable(graph, "w", Shape{}, DType::kFloat32, initializers::Constant(0.0));
    x = ops::Placeholder(graph, DType::kFloat32, Shape(), "x");
    SyncReplicasOptions options{.replicas_to_aggregate = staleness == 0 ? 2 : 1, .staleness = staleness};
    options.variable_averages = &ema;
    if (staleness == 0) options.variables_to_average = {w};
    sync.emplace(sgd, options);
    train = sync->Minimize(w.value() * x, step);
    const auto hook = sync->MakeSessionRunHook(index == 0, staleness == 0 ? 0 : -1);
    session.reset(new MonitoredSession(MonitoredTrainingSession(
        graph, {.master = cluster.target("worker", index), .is_chief = index == 0, .hooks = {hook}})));
  }
  void Step(float value) {
    session->Run({{x, Tensor::Scalar(value)}}, {}, {train}, {.timeout = std::chrono::seconds(60)});
  }
  float Average() { return session->Run({}, {ema.average(w)})[0].scalar<float>(); }

  Graph graph;
  GradientDescentOptimizer sgd{0.5};
  ExponentialMovingAverage ema{0.75};
  std::optional<SyncReplicasOptimizer> sync;
  ops::Variable w;
  Output x;
  Node* train = nullptr;
  std::unique_ptr<MonitoredSession> session;
};

TEST_F(MovingAverageTest, SyncReplicasAveragesAfterEachUpdate) {
  LocalCluster cluster({{"ps", 2}, {"worker", 2}});
  AveragingWorker chief(cluster, 0, 0);
  AveragingWorker worker(cluster, 1, 0);
  float w = 0.0f, average = 0.0f;
  for (const float x : {1.0f, 4.0f, -2.0f}) {
    std::future<void> other = std::async(std::launch::async, [&] { worker.Step(x + 1); });
    chief.Step(x);
    other.get();
    w -= 0.5f * (x + 0.5f);
    average -= 0.25f * (average - w);
    EXPECT_EQ(chief.Average(), average);
    EXPECT_EQ(worker.Average(), average);
  }
  chief.session->Close();
}

TEST_F(MovingAverageTest, WithStalenessEachGradientIsFollowedByTheAverages) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  AveragingWorker chief(cluster, 0, kUnlimitedStaleness);
  float w = 0.0f, average = 0.0f;
  for (const float x : {1.0f, 4.0f}) {
    chief.Step(x);
    w -= 0.5f * x;
    average -= 0.25f * (average - w);
    EXPECT_EQ(chief.Average(), average);
  }
}

}  // namespace
}  // namespace cohort::train
