// Tests that kill each kind of task while MonitoredTrainingSessions train. No program sees an error, and the variable
// agrees with the global step at the end: no update is lost alone or made twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class MonitoredChaosTest : public ::testing::Test {
 protected:
  MonitoredChaosTest() : cluster_({{"ps", 1}, {"worker", 2}}, {MONITORED_TASK}) {}
  void SetUp() override { UseTestToken(); }

  Arguments Flags(const Arguments& more) const {
    Arguments all = {"--dir=" + folder_ / "model", "--pause_ms=5"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void AwaitRuns(int runs) {
    for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "acked", runs)) << cluster_.Describe();
  }
  // Waits for a task's clean end.
  void ExpectEnd(const std::string& job, int index) {
    EXPECT_EQ(cluster_.task(job, index).Wait(), 0) << cluster_.Describe();
  }
  // Checks the last line of the chief: "end STEP W".
  void ExpectWIsTheStep(int last_step) {
    long step = 0;
    double w = 0;
    const std::string line = cluster_.LastLine("worker", 0, "end");
    ASSERT_EQ(std::sscanf(line.c_str(), "end %ld %lf", &step, &w), 2) << cluster_.Describe();
    EXPECT_GE(step, last_step);
    EXPECT_EQ(w, static_cast<double>(step)) << cluster_.Describe();
  }

  const TempFolder folder_;
  ProcessCluster cluster_;
};

TEST_F(MonitoredChaosTest, TheParameterServer) {
  const Arguments flags = Flags({"--last_step=120"});
  cluster_.StartAll(flags);
  AwaitRuns(15);
  cluster_.Kill("ps", 0);
  cluster_.Start("ps", 0, flags);
  for (int w = 0; w < 2; ++w) ExpectEnd("worker", w);
  ExpectEnd("ps", 0);
  ExpectWIsTheStep(120);
  EXPECT_THAT(cluster_.task("worker", 0).err(), AllOf(HasSubstr("a task was lost"), HasSubstr("Training goes on at")));
}

TEST_F(MonitoredChaosTest, AWorkerAlsoOneThatHoldsAToken) {
  for (const std::string sync : {"--sync=0", "--sync=2"}) {
    ProcessCluster cluster({{"ps", 1}, {"worker", 2}}, {MONITORED_TASK});
    cluster.StartAll({"--last_step=60", "--pause_ms=5", sync});
    for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 10)) << cluster.Describe();
    cluster.Kill("worker", 1);
    EXPECT_EQ(cluster.task("worker", 0).Wait(), 0) << cluster.Describe();
    EXPECT_EQ(cluster.task("ps", 0).Wait(), 0) << cluster.Describe();
    EXPECT_THAT(cluster.LastLine("worker", 0, "end"), HasSubstr("end 60 60")) << cluster.Describe();
  }
}

TEST_F(MonitoredChaosTest, TheChiefAndANewOneTakesItsPlace) {
  for (const std::string sync : {"--sync=0", "--sync=2"}) {
    const TempFolder folder;
    const Arguments flags = {"--last_step=300", "--pause_ms=5", "--dir=" + folder / "model", sync};
    ProcessCluster cluster({{"ps", 1}, {"worker", 2}}, {MONITORED_TASK});
    cluster.StartAll(flags);
    for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 10)) << cluster.Describe();
    cluster.Kill("worker", 0);
    cluster.Start("worker", 0, flags);
    for (int w = 0; w < 2; ++w) EXPECT_EQ(cluster.task("worker", w).Wait(), 0) << cluster.Describe();
    EXPECT_EQ(cluster.task("ps", 0).Wait(), 0) << cluster.Describe();
    // The parameter server lived, so nothing was restored.
    EXPECT_THAT(cluster.task("worker", 0).err(), HasSubstr("The variables hold this training at step"));
    long step = 0;
    double w = 0;
    const std::string line = cluster.LastLine("worker", 0, "end");
    ASSERT_EQ(std::sscanf(line.c_str(), "end %ld %lf", &step, &w), 2) << cluster.Describe();
    EXPECT_GE(step, 300);
    // A step of the dead chief may have been cut between its two sets of updates, never within one; both variables are
    // on one parameter server and so in one set.
    EXPECT_EQ(w, static_cast<double>(step)) << cluster.Describe();
  }
}

// SIGTERM comes to both workers of a synchronous training in either order. If the chief leaves first, the worker waits
// for a token that does not come. Both end by themselves, the chief saves, and the training goes on there.
TEST_F(MonitoredChaosTest, SigtermToAllEndsSynchronousTraining) {
  int last_step = 100;
  for (const int first : {0, 1}) {
    const Arguments flags = Flags({"--sync=2", "--last_step=1000000"});
    if (first == 0) {
      cluster_.StartAll(flags);
    } else {
      for (int w = 0; w < 2; ++w) cluster_.Start("worker", w, flags);
    }
    AwaitRuns(15);
    for (const int w : {first, 1 - first}) {
      cluster_.task("worker", w).Signal(SIGTERM);
      // Without the chief, the worker makes at most two more steps before it has to wait.
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    for (int w = 0; w < 2; ++w) ExpectEnd("worker", w);
    ExpectWIsTheStep(10);
    if (first == 0) {
      EXPECT_THAT(cluster_.task("worker", 1).err(), HasSubstr("expected a token within")) << cluster_.Describe();
    }
    long saved = 0;
    std::sscanf(cluster_.LastLine("worker", 0, "end").c_str(), "end %ld", &saved);
    last_step = static_cast<int>(saved) + 50;
  }
  const Arguments flags = Flags({"--sync=2", "--last_step=" + std::to_string(last_step)});
  for (int w = 0; w < 2; ++w) cluster_.Start("worker", w, flags);
  for (int w = 0; w < 2; ++w) ExpectEnd("worker", w);
  ExpectEnd("ps", 0);  // not before: the training was not done
  ExpectWIsTheStep(last_step);
}

// If only one worker of a synchronous training gets SIGTERM, the other one does not leave. Without the chief it waits,
// longer than a stopped worker would wait.
TEST_F(MonitoredChaosTest, AWorkerThatSigtermStopsAloneComesBack) {
  const Arguments flags = Flags({"--sync=2", "--last_step=400"});
  cluster_.StartAll(flags);
  for (const int stopped : {0, 1}) {
    AwaitRuns(15);
    const int acked = cluster_.CountLines("worker", 1 - stopped, "acked");
    cluster_.task("worker", stopped).Signal(SIGTERM);
    ExpectEnd("worker", stopped);
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // longer than the wait of a worker with SIGTERM
    cluster_.Start("worker", stopped, flags);
    ASSERT_TRUE(cluster_.WaitForLines("worker", 1 - stopped, "acked", acked + 20)) << cluster_.Describe();
  }
  for (int w = 0; w < 2; ++w) ExpectEnd("worker", w);
  ExpectEnd("ps", 0);
  ExpectWIsTheStep(400);
}

TEST_F(MonitoredChaosTest, ASecondChiefEndsAndNamesTheFirst) {
  const Arguments flags = Flags({"--last_step=1000000"});
  cluster_.Start("ps", 0, flags);
  cluster_.Start("worker", 0, flags);
  ASSERT_TRUE(cluster_.WaitForLines("worker", 0, "acked", 3)) << cluster_.Describe();
  cluster_.Start("worker", 1, Flags({"--chief=1", "--chief_wait_ms=500"}));
  EXPECT_EQ(cluster_.task("worker", 1).Wait(), 1) << cluster_.Describe();
  EXPECT_THAT(cluster_.task("worker", 1).err(),
              AllOf(HasSubstr("expected one chief"), HasSubstr("/job:worker/task:0"), HasSubstr("/job:worker/task:1")));
  const int runs = cluster_.CountLines("worker", 0, "acked");
  EXPECT_TRUE(cluster_.WaitForLines("worker", 0, "acked", runs + 3)) << cluster_.Describe();
}

TEST_F(MonitoredChaosTest, WorkersWithOtherNumbersEndAndNameTheChief) {
  cluster_.Start("ps", 0);
  cluster_.Start("worker", 0, Flags({"--last_step=1000000", "--sync=1"}));
  ASSERT_TRUE(cluster_.WaitForLines("worker", 0, "acked", 3)) << cluster_.Describe();
  cluster_.Start("worker", 1, Flags({"--sync=2"}));
  EXPECT_EQ(cluster_.task("worker", 1).Wait(), 1) << cluster_.Describe();
  EXPECT_THAT(cluster_.task("worker", 1).err(),
              AllOf(HasSubstr("replicas_to_aggregate is 2 in /job:worker/task:1 and 1 in the chief"),
                    HasSubstr("/job:worker/task:0")));
}

TEST_F(MonitoredChaosTest, ATimelineHasThePartsOfOtherProcesses) {
  const std::string timelines = folder_ / "timelines";
  cluster_.Start("ps", 0);
  cluster_.Start("worker", 0, Flags({"--last_step=4", "--profile=" + timelines}));
  ExpectEnd("worker", 0);
  std::set<std::string> rows;
  std::set<std::string> updates;  // the rows of the ops that change variables
  const json timeline = json::parse(ReadFile(timelines + "/timeline-3.json"));
  for (const json& event : timeline.at("traceEvents")) {
    if (event.at("ph") == "M") rows.insert(event.at("args").at("name").get<std::string>());
  }
  EXPECT_EQ(rows, (std::set<std::string>{"/job:ps/replica:0/task:0/device:CPU:0",
                                         "/job:worker/replica:0/task:0/device:CPU:0"}));
  int nodes_of_ps = 0;
  int nodes_of_worker = 0;
  for (const json& event : timeline.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++(event.at("pid") == 0 ? nodes_of_ps : nodes_of_worker);
    EXPECT_GE(event.at("dur").get<double>(), 0);
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_FALSE(event.at("args").at("name").get<std::string>().empty());
    if (event.at("name") == "AssignAddVariableOp" || event.at("name") == "ResourceApplyGradientDescent") {
      updates.insert(event.at("args").at("op").get<std::string>());
      EXPECT_EQ(event.at("pid"), 0) << event;
    }
  }
  EXPECT_GT(nodes_of_ps, 0);
  EXPECT_GT(nodes_of_worker, 0);
  EXPECT_EQ(updates.size(), 2u);
}

}  // namespace
}  // namespace cohort::testing
