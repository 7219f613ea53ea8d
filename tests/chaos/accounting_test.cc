// Tests that check the variables to the bit after training in processes: no step is lost, no step is applied twice, and
// no step is applied only in part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/core/str_cat.h"
#include "tests/chaos/counting_model.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

class AccountingTest : public ::testing::Test {
 protected:
  void SetUp() override { UseTestToken(); }
};

TEST_F(AccountingTest, EveryAcknowledgedStepCountsOnce) {
  constexpr int kSteps[2] = {400, 250};
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  const Server ps0(cluster.spec(), "ps", 0);  // it stays when training is done, so that the test can read its variables
  const Server ps1(cluster.spec(), "ps", 1);
  for (int w = 0; w < 2; ++w) cluster.Start("worker", w, {StrCat("--steps=", kSteps[w])});
  for (int w = 0; w < 2; ++w) {
    ASSERT_EQ(cluster.task("worker", w).Wait(), 0) << cluster.Describe();
    EXPECT_EQ(cluster.CountLines("worker", w, "acked"), kSteps[w]);
  }
  const ModelState state = ReadModel(cluster.spec());
  EXPECT_EQ(state.global_step, kSteps[0] + kSteps[1]);
  // Each step subtracts learning rate x gradient exactly.
  EXPECT_EQ(state.applied, std::vector<int64_t>(4, kSteps[0] + kSteps[1]));
}

TEST_F(AccountingTest, AnInGraphSynchronousUpdateIsTheMeanOfTheReplicas) {
  constexpr int kReplicas = 3;
  constexpr int kSteps = 50;
  ProcessCluster cluster({{"ps", 2}, {"worker", kReplicas}});
  cluster.StartAll({"--serve=1"});  // the programs only serve; this process is the only client
  Graph graph;
  ops::Variable w;
  {
    const DeviceScope scope(graph, "/job:ps/task:1");
    w = ops::Variable(graph, ops::Const(graph, std::vector<float>{8, -8}), {.name = "w"});
  }
  std::vector<Output> gradients;
  for (int r = 0; r < kReplicas; ++r) {
    const DeviceScope scope(graph, StrCat("/job:worker/task:", r));
    // loss_r = (r + 1) sum(w) + sum(w^2) / 2, so its gradient is (r + 1) + w.
    const Output loss = ops::Sum(w.value() * static_cast<float>(r + 1)) + ops::Sum(w.value() * w.value()) * 0.5f;
    gradients.push_back(Gradients({loss}, {w.value()})[0].values);
  }
  Node* train;
  {
    const DeviceScope scope(graph, "/job:ps/task:1");
    train = w.AssignSub(ops::AddN(gradients) * (0.5f / kReplicas));
  }
  Session session(graph, "grpc://" + cluster.address("worker", 0), {.connect_timeout_secs = 60});
  session.Run(ops::GlobalVariablesInitializer(graph));
  std::vector<float> expected{8, -8};
  for (int i = 0; i < kSteps; ++i) {
    session.Run(train);
    for (float& e : expected) e -= ((1 + e) + (2 + e) + (3 + e)) * (0.5f / kReplicas);
    const std::vector<float> values = session.Run(w.value()).ToVector<float>();
    for (size_t k = 0; k < expected.size(); ++k) ASSERT_NEAR(values[k], expected[k], 1e-5f) << "step " << i;
  }
  EXPECT_NEAR(expected[0], -2.0f, 1e-5f);  // there the mean gradient is 0: mean(r + 1) = 2
}

// A worker dies between two gradients of one parameter server. Each gradient has several chunks. Both are applied or
// neither.
TEST_F(AccountingTest, ASetOfUpdatesIsNeverAppliedByHalves) {
  constexpr int kRounds = 30;
  constexpr int kVariables = 2;
  constexpr int64_t kSize = 1'500'000;
  const Arguments flags = {StrCat("--variables=", kVariables), StrCat("--size=", kSize)};
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  Server ps(cluster.spec(), "ps", 0);
  const auto node = ServerDirectory::Global().Find(ps.Target());
  cluster.Start("worker", 0, {flags[0], flags[1], "--steps=1"});  // the chief initializes
  ASSERT_EQ(cluster.task("worker", 0).Wait(), 0) << cluster.Describe();
  std::mt19937 random(20240607);
  int64_t acknowledged = 1;
  int64_t applied = 1;
  for (int round = 0; round < kRounds; ++round) {
    cluster.Start("worker", 1, flags);
    ASSERT_TRUE(cluster.WaitForLines("worker", 1, "acked", 1)) << cluster.Describe();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60000));  // some moment in one of the next steps
    cluster.Kill("worker", 1);
    acknowledged = applied + cluster.CountLines("worker", 1, "acked");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (node->local_task()->num_executables() > 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ModelState state = ReadModel(cluster.spec(), kVariables, kSize);
    // A set that had begun when its session ended may still be under way. A set of which only half was applied would
    // stay so.
    while (state.applied[0] != state.applied[1] && std::chrono::steady_clock::now() < deadline) {
      state = ReadModel(cluster.spec(), kVariables, kSize);
    }
    ASSERT_EQ(state.applied[0], state.applied[1]) << "round " << round;
    ASSERT_GE(state.applied[0], acknowledged) << "round " << round;
    ASSERT_LE(state.applied[0], acknowledged + 1) << "round " << round;
    applied = state.applied[0];
  }
}

}  // namespace
}  // namespace cohort::testing
