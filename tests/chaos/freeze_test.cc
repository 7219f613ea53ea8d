// Tests that freeze each kind of task with SIGSTOP. A frozen process exists and does nothing. A task that needs it gets
// an error within the silence limit. When the frozen task goes on, it learns that it was given up. Nothing is applied
// twice, and training goes on in new sessions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

constexpr auto kSilence = std::chrono::milliseconds(1500);
const Arguments kTraining = {"--silence_ms=1500", "--heartbeat_ms=200", "--recover=1", "--pause_ms=5",
                             "--connect_secs=2"};

Arguments With(Arguments flags, const Arguments& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

class FreezeTest : public ::testing::Test {
 protected:
  void SetUp() override { UseTestToken(); }
};

// Checks the variables after an asynchronous training that was killed. Every acknowledged step is in every variable.
// There may be further steps, but only those that failed at their worker, or that it had no time to acknowledge.
void ExpectEveryStepOnce(ProcessCluster& cluster, int variables = 4, int64_t size = 4) {
  int64_t acknowledged = 0;
  int64_t failed = 0;
  for (int w = 0; w < 2; ++w) {
    cluster.Kill("worker", w);
    acknowledged += cluster.CountLines("worker", w, "acked");
    failed += cluster.CountLines("worker", w, "failed") + 1;
  }
  const ModelState state = ReadModel(cluster.spec(), variables, size);
  EXPECT_GE(state.global_step, acknowledged);
  EXPECT_LE(state.global_step, acknowledged + failed);
  for (const int64_t applied : state.applied) {
    EXPECT_GE(applied, state.global_step);
    EXPECT_LE(applied, acknowledged + failed);
  }
}

TEST_F(FreezeTest, AParameterServer) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll(kTraining);
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 10)) << cluster.Describe();
  cluster.Freeze("ps", 1);
  for (int w = 0; w < 2; ++w) {
    ASSERT_TRUE(cluster.WaitForLines("worker", w, "failed", 1)) << cluster.Describe();
    EXPECT_THAT(cluster.LastLine("worker", w, "failed"),
                AllOf(HasSubstr("Unavailable"), HasSubstr("/job:ps/replica:0/task:1"),
                      HasSubstr(cluster.address("ps", 1)), HasSubstr("no byte for ")));
  }
  // While it is frozen, new sessions name it, too. They find the lost connection, or a new connection gets no answer.
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "failed", 2)) << cluster.Describe();
  EXPECT_THAT(cluster.LastLine("worker", 0, "failed"),
              AllOf(AnyOf(HasSubstr("Unavailable"), HasSubstr("DeadlineExceeded")),
                    HasSubstr("/job:ps/replica:0/task:1"), HasSubstr(cluster.address("ps", 1)),
                    AnyOf(HasSubstr("no byte for "), HasSubstr("has not answered within "))));
  cluster.Thaw("ps", 1);
  for (int w = 0; w < 2; ++w) {
    const int before = cluster.CountLines("worker", w, "acked");
    EXPECT_TRUE(cluster.WaitForLines("worker", w, "acked", before + 10)) << cluster.Describe();
  }
  ExpectEveryStepOnce(cluster);
}

// `frozen` is frozen until ps/0 has given up its lease. The other worker goes on meanwhile.
void FreezeAWorker(int frozen, int64_t size) {
  const int other = 1 - frozen;
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  ServerOptions options;
  options.silence_limit = kSilence;
  options.heartbeat_interval = std::chrono::milliseconds(200);
  Server ps(cluster.spec(), "ps", 0, options);  // in this process, so that the test can see its state
  const auto node = ServerDirectory::Global().Find(ps.Target());
  cluster.StartAll(With(kTraining, {"--size=" + std::to_string(size)}));
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 10)) << cluster.Describe();
  const size_t of_both = node->local_task()->num_executables();
  cluster.Freeze("worker", frozen);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  while (node->local_task()->num_executables() >= of_both && std::chrono::steady_clock::now() < deadline) {
    cluster.WaitForLines("worker", other, "acked", cluster.CountLines("worker", other, "acked") + 1);
  }
  EXPECT_LT(node->local_task()->num_executables(), of_both);
  EXPECT_EQ(cluster.CountLines("worker", other, "failed"), 0) << cluster.Describe();
  cluster.Thaw("worker", frozen);
  ASSERT_TRUE(cluster.WaitForLines("worker", frozen, "failed", 1)) << cluster.Describe();
  EXPECT_THAT(cluster.LastLine("worker", frozen, "failed"),
              AllOf(AnyOf(HasSubstr("Aborted"), HasSubstr("Unavailable")), HasSubstr("/job:ps/replica:0/task:0")));
  const int before = cluster.CountLines("worker", frozen, "acked");
  EXPECT_TRUE(cluster.WaitForLines("worker", frozen, "acked", before + 10)) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", other, "failed"), 0) << cluster.Describe();
  ExpectEveryStepOnce(cluster, 4, size);
}

TEST_F(FreezeTest, AWorker) { FreezeAWorker(1, 4); }
TEST_F(FreezeTest, AWorkerThatSendsLargeTensors) { FreezeAWorker(1, 1'000'000); }
TEST_F(FreezeTest, TheChief) { FreezeAWorker(0, 4); }

TEST_F(FreezeTest, TheChiefUntilItsServersGiveUp) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.StartAll({"--silence_ms=1500", "--heartbeat_ms=200", "--pause_ms=5", "--orphan_ms=500"});
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 10)) << cluster.Describe();
  cluster.Freeze("worker", 0);
  EXPECT_EQ(cluster.task("ps", 0).Wait(), 1) << cluster.Describe();
  EXPECT_THAT(cluster.task("ps", 0).err(),
              AllOf(HasSubstr("the chief /job:worker/replica:0/task:0 has been gone"), HasSubstr("orphan timeout")));
  cluster.Thaw("worker", 0);
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 1) << cluster.Describe();
  EXPECT_THAT(cluster.LastLine("worker", 0, "failed"),
              AllOf(HasSubstr("Unavailable"), HasSubstr("/job:ps/replica:0/task:0")));
}

TEST_F(FreezeTest, AShortPauseIsNoFailure) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.StartAll({"--silence_ms=60000", "--heartbeat_ms=50", "--pause_ms=2"});
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 10)) << cluster.Describe();
  for (const auto& [job, index] : {std::pair{"ps", 0}, {"worker", 0}, {"worker", 1}}) {
    cluster.Freeze(job, index);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));  // many heartbeats
    cluster.Thaw(job, index);
    for (int w = 0; w < 2; ++w) {
      const int before = cluster.CountLines("worker", w, "acked");
      EXPECT_TRUE(cluster.WaitForLines("worker", w, "acked", before + 5)) << cluster.Describe();
      EXPECT_EQ(cluster.CountLines("worker", w, "failed"), 0) << cluster.Describe();
    }
  }
}

// A step with a deadline ends at its deadline, long before the silence limit.
TEST_F(FreezeTest, AStepsOwnDeadlineComesFirst) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 1}});
  cluster.StartAll({"--pause_ms=5", "--timeout_ms=700"});
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 10)) << cluster.Describe();
  cluster.Freeze("ps", 1);
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 1) << cluster.Describe();
  EXPECT_THAT(cluster.LastLine("worker", 0, "failed"),
              AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("700 ms"), HasSubstr("/job:ps/replica:0/task:1")));
}

}  // namespace
}  // namespace cohort::testing
