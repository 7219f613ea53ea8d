// Tests that kill each kind of task in the middle of training. They check which tasks get an error, which go on, and
// which end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <thread>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server_directory.h"
#include "tests/chaos/counting_model.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// The silence limit cannot end a step here. Only the closed connection can.
const char* const kNeverSilent = "--silence_ms=600000";

class KillTest : public ::testing::Test {
 protected:
  void SetUp() override { UseTestToken(); }
};

// Matches the text of a worker about a dead task.
auto Names(const ProcessCluster& cluster, const std::string& job, int index) {
  return AllOf(HasSubstr("Unavailable"), HasSubstr(ProcessCluster::FullName(job, index)),
               HasSubstr(cluster.address(job, index)));
}

// `size` is the number of elements of each variable. The larger variables travel in chunks on the bulk streams.
void KillAParameterServerInAStep(int64_t size) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll({kNeverSilent, "--orphan_ms=500", "--pause_ms=2", "--size=" + std::to_string(size)});
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 10)) << cluster.Describe();
  // The next steps of both workers wait for the frozen task. So they are in the middle of a step when it is killed.
  cluster.Freeze("ps", 1);
  cluster.Kill("ps", 1);
  for (int w = 0; w < 2; ++w) {
    EXPECT_EQ(cluster.task("worker", w).Wait(), 1) << cluster.Describe();
    EXPECT_THAT(cluster.LastLine("worker", w, "failed"), Names(cluster, "ps", 1));
    EXPECT_THAT(cluster.task("worker", w).err(), HasSubstr("chaos_task: Unavailable"));
  }
  EXPECT_EQ(cluster.task("ps", 0).Wait(), 1) << cluster.Describe();  // its chief is gone
  EXPECT_THAT(cluster.task("ps", 0).err(),
              AllOf(HasSubstr("the chief /job:worker/replica:0/task:0 has been gone"), HasSubstr("orphan timeout")));
}

TEST_F(KillTest, AParameterServer) { KillAParameterServerInAStep(4); }
TEST_F(KillTest, AParameterServerWithLargeTensorsUnderWay) { KillAParameterServerInAStep(1'000'000); }

TEST_F(KillTest, AWorkerIsNothingToTheOthers) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll({kNeverSilent, "--pause_ms=2", "--steps=600"});
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 20)) << cluster.Describe();
  cluster.Kill("worker", 1);
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 0) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 0, "acked"), 600);
  EXPECT_EQ(cluster.CountLines("worker", 0, "failed"), 0);
  for (int p = 0; p < 2; ++p) {  // the chief has said that training is done, and the dead worker holds no lease
    EXPECT_EQ(cluster.task("ps", p).Wait(), 0) << cluster.Describe();
    EXPECT_THAT(cluster.task("ps", p).out(), HasSubstr("joined"));
  }
}

// After one worker has stopped, the other goes on, and none of its steps fails. Its rate is not measured exactly. If
// its rate is below half of the rate before in three windows in a row, the test fails: a busy machine alone does not do
// that.
void StopAWorker(const std::function<void(ProcessCluster&)>& stop) {
  constexpr auto kWindow = std::chrono::milliseconds(1500);
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.StartAll({kNeverSilent, "--pause_ms=2"});
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 20)) << cluster.Describe();
  const auto steps_in_window = [&] {
    const int before = cluster.CountLines("worker", 0, "acked");
    std::this_thread::sleep_for(kWindow);
    return cluster.CountLines("worker", 0, "acked") - before;
  };
  const int together = steps_in_window();
  ASSERT_GT(together, 0) << cluster.Describe();
  stop(cluster);
  const int of_the_stopped = cluster.CountLines("worker", 1, "acked");
  int alone = 0;
  for (int window = 0; window < 3 && 2 * alone < together; ++window) alone = steps_in_window();
  EXPECT_GE(2 * alone, together) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 0, "failed"), 0) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 1, "acked"), of_the_stopped);
}

TEST_F(KillTest, AKilledWorkerHoldsUpNoOther) {
  StopAWorker([](ProcessCluster& cluster) { cluster.Kill("worker", 1); });
}
TEST_F(KillTest, AFrozenWorkerHoldsUpNoOther) {
  StopAWorker([](ProcessCluster& cluster) { cluster.Freeze("worker", 1); });
}

TEST_F(KillTest, TheParameterServerFreesWhatADeadWorkerHeld) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  ServerOptions options;
  options.silence_limit = std::chrono::minutes(10);
  Server ps(cluster.spec(), "ps", 0, options);  // in this process, where we can look into it
  const auto node = ServerDirectory::Global().Find(ps.Target());
  cluster.Start("worker", 0, {kNeverSilent, "--pause_ms=2"});
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 5)) << cluster.Describe();
  const size_t of_one = node->local_task()->num_executables();
  EXPECT_GT(of_one, 0u);
  cluster.Start("worker", 1, {kNeverSilent, "--pause_ms=2"});
  ASSERT_TRUE(cluster.WaitForLines("worker", 1, "acked", 5)) << cluster.Describe();
  EXPECT_GT(node->local_task()->num_executables(), of_one);
  cluster.Kill("worker", 1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  while (node->local_task()->num_executables() != of_one && std::chrono::steady_clock::now() < deadline) {
    cluster.WaitForLines("worker", 0, "acked", cluster.CountLines("worker", 0, "acked") + 1);
  }
  EXPECT_EQ(node->local_task()->num_executables(), of_one);
  EXPECT_TRUE(node->local_task()->DescribeSteps().size() <= 1) << "more steps than the living worker has";
}

TEST_F(KillTest, TheChief) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll({kNeverSilent, "--orphan_ms=1000", "--pause_ms=2"});
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 20)) << cluster.Describe();
  cluster.Kill("worker", 0);
  for (int p = 0; p < 2; ++p) {
    EXPECT_EQ(cluster.task("ps", p).Wait(), 1) << cluster.Describe();
    EXPECT_THAT(cluster.task("ps", p).err(), AllOf(HasSubstr("chaos_task: Unavailable"), HasSubstr("orphan timeout"),
                                                   HasSubstr("/job:worker/replica:0/task:0")));
  }
  // The other worker does not depend on the chief. It ends with the parameter servers, in a step, or, if it has
  // connected again, before the next one.
  EXPECT_EQ(cluster.task("worker", 1).Wait(), 1) << cluster.Describe();
  EXPECT_THAT(cluster.LastLine("worker", 1, "failed"),
              AllOf(AnyOf(HasSubstr("Unavailable"), HasSubstr("Aborted")), HasSubstr("/job:ps/")));
}

TEST_F(KillTest, TheChiefBeforeItHasInitialized) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.Start("ps", 0, {"--orphan_ms=500"});
  cluster.Start("worker", 1);
  ASSERT_TRUE(cluster.task("worker", 1).WaitForText("Waiting for model to be ready")) << cluster.Describe();
  cluster.Start("worker", 0, {"--serve=1"});  // this chief never initializes the variables
  ASSERT_TRUE(cluster.task("worker", 0).WaitForText("serving"));
  cluster.Kill("worker", 0);
  // The other worker waits for the orphan timeout of 60 s, or until the chief is back.
  EXPECT_EQ(cluster.CountLines("worker", 1, "failed"), 0);
  cluster.Start("worker", 0, {"--steps=20"});
  EXPECT_TRUE(cluster.WaitForLines("worker", 1, "acked", 5)) << cluster.Describe();
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 0) << cluster.Describe();
}

TEST_F(KillTest, AWorkerIsToldOfAChiefThatIsLostBeforeItHasInitialized) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.Start("ps", 0, {"--orphan_ms=600000"});
  cluster.Start("worker", 1, {"--orphan_ms=500"}, {.environment = {"COHORT_LOG_LEVEL=debug"}});
  ASSERT_TRUE(cluster.task("worker", 1).WaitForText("Waiting for model to be ready")) << cluster.Describe();
  cluster.Start("worker", 0, {"--serve=1"});
  ASSERT_TRUE(cluster.task("worker", 1).WaitForText("sees the chief")) << cluster.Describe();
  cluster.Kill("worker", 0);
  EXPECT_EQ(cluster.task("worker", 1).Wait(), 1) << cluster.Describe();
  EXPECT_THAT(cluster.task("worker", 1).err(),
              AllOf(HasSubstr("chaos_task: Unavailable"), HasSubstr("/job:worker/replica:0/task:0"),
                    HasSubstr("has been gone for 0.5 s (orphan timeout)")));
}

}  // namespace
}  // namespace cohort::testing
