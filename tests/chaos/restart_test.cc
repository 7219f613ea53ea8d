// Tests of tasks that start late, are started again, or never start. They also check that training goes on from an
// intact checkpoint, whenever a process was killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/counting_model.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RestartTest : public ::testing::Test {
 protected:
  void SetUp() override { UseTestToken(); }

  // Trains until there is a checkpoint of step `at_least` or later. Then kills a ps, so that all tasks end.
  void TrainAndCrash(int64_t at_least);
  // Returns the step of the first acknowledged step of a new cluster. Sets *said to the output of its chief.
  int64_t FirstStepOfANewRun(std::string* said);

  const TempFolder folder_;
};

// Returns the global step in a checkpoint, or -1 for "". With asynchronous workers it may be a few steps more than the
// step in the checkpoint's name, which is read first.
int64_t StepOf(const std::string& checkpoint) {
  return checkpoint.empty() ? -1 : BundleReader(checkpoint).Read("global_step").scalar<int64_t>();
}

void RestartTest::TrainAndCrash(int64_t at_least) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll({"--logdir=" + folder_.path(), "--save_secs=0.1", "--pause_ms=5", "--orphan_ms=300"});
  const auto newest_name = [this] {
    const std::string prefix = LatestCheckpoint(folder_.path());
    return prefix.empty() ? -1 : std::stoll(prefix.substr(prefix.rfind('-') + 1));
  };
  for (int steps = 50; newest_name() < at_least; steps += 50) {
    ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", steps)) << cluster.Describe();
  }
  cluster.Kill("ps", 1);
  for (const auto& [job, index] : {std::pair{"worker", 0}, {"worker", 1}, {"ps", 0}}) {
    EXPECT_EQ(cluster.task(job, index).Wait(), 1) << cluster.Describe();
  }
}

int64_t RestartTest::FirstStepOfANewRun(std::string* said) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 1}});
  cluster.StartAll({"--logdir=" + folder_.path(), "--steps=1", "--read_step=1"});
  for (const auto& [job, index] : {std::pair{"worker", 0}, {"ps", 0}, {"ps", 1}}) {
    EXPECT_EQ(cluster.task(job, index).Wait(), 0) << cluster.Describe();
  }
  *said = cluster.task("worker", 0).err();
  const std::string line = cluster.LastLine("worker", 0, "acked 1 ");
  return line.empty() ? -1 : std::stoll(line.substr(8));
}

TEST_F(RestartTest, AWorkerJoinsAgain) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll({"--pause_ms=2"});
  for (int round = 0; round < 3; ++round) {
    for (int w = 0; w < 2; ++w) {
      const int before = cluster.CountLines("worker", w, "acked");
      ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", before + 10)) << cluster.Describe();
    }
    cluster.Kill("worker", 1);
    cluster.Start("worker", 1, {"--pause_ms=2"});
  }
  ASSERT_TRUE(cluster.WaitForLines("worker", 1, "acked", 10)) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 0, "failed") + cluster.CountLines("worker", 1, "failed"), 0);
}

TEST_F(RestartTest, ARestartedParameterServerIsToldApart) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll({"--pause_ms=3000"});  // no step is under way during the rest of the test
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 1)) << cluster.Describe();
  cluster.Kill("ps", 1);
  cluster.Start("ps", 1);
  ASSERT_TRUE(cluster.task("ps", 1).WaitForText("serving"));
  for (int w = 0; w < 2; ++w) {
    EXPECT_EQ(cluster.task("worker", w).Wait(), 1) << cluster.Describe();
    EXPECT_THAT(cluster.LastLine("worker", w, "failed"),
                AllOf(HasSubstr("Aborted"), HasSubstr("was restarted"), HasSubstr("/job:ps/replica:0/task:1"),
                      HasSubstr(cluster.address("ps", 1))));
  }
}

TEST_F(RestartTest, ANewRunFollowsTheCheckpoint) {
  TrainAndCrash(20);
  if (HasFatalFailure()) return;
  const int64_t saved = StepOf(LatestCheckpoint(folder_.path()));
  std::string said;
  EXPECT_EQ(FirstStepOfANewRun(&said), saved + 1) << said;
}

TEST_F(RestartTest, ADamagedCheckpointIsPassedOver) {
  TrainAndCrash(60);
  if (HasFatalFailure()) return;
  const auto all = ReadCheckpointState(folder_.path())->all_model_checkpoint_paths;
  ASSERT_GE(all.size(), 3u);
  const std::string newest = all[all.size() - 1];
  const std::string before = all[all.size() - 2];
  const std::string data = newest + ".data-00000-of-00001";
  {
    std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(file.good()) << data;
    const int byte = file.get();
    file.seekp(0);
    file.put(static_cast<char>(byte ^ 0x10));  // one bit
  }
  std::filesystem::resize_file(before + ".index", std::filesystem::file_size(before + ".index") / 2);
  std::string said;
  EXPECT_EQ(FirstStepOfANewRun(&said), StepOf(all[all.size() - 3]) + 1) << said;
  EXPECT_THAT(said, AllOf(HasSubstr(newest), HasSubstr(before)));
}

// The updates of two workers come in several messages, and every few of them a cut of the variables is saved. Neither
// waits for the other for ever.
TEST_F(RestartTest, TrainingGoesOnWhileItSaves) {
  constexpr int kSteps = 4000;
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll(
      {"--logdir=" + folder_.path(), "--save_secs=0.005", StrCat("--steps=", kSteps), "--silence_ms=5000"});
  for (int w = 0; w < 2; ++w) {
    EXPECT_EQ(cluster.task("worker", w).Wait(), 0) << cluster.Describe();
    EXPECT_EQ(cluster.CountLines("worker", w, "acked"), kSteps);
  }
  for (int p = 0; p < 2; ++p) EXPECT_EQ(cluster.task("ps", p).Wait(), 0) << cluster.Describe();
  EXPECT_GE(StepOf(LatestCheckpoint(folder_.path())),
            kSteps);  // the chief's last checkpoint; the other worker may have gone on
}

// Kills the chief again and again, at any moment of a save. Whatever is in the folder then, a new run finds a complete
// checkpoint and goes on from it. No run goes back to a step before an earlier checkpoint.
TEST_F(RestartTest, AChiefThatDiesWhileItSavesLeavesAnIntactCheckpoint) {
  std::mt19937 random(20240608);
  int64_t reached = 0;
  for (int round = 0; round < 8; ++round) {
    ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
    cluster.Start("ps", 0, {"--orphan_ms=200", "--size=100000"});
    // The chief saves as fast as it can, so that it is in the middle of a save most of the time.
    cluster.Start("worker", 0, {"--size=100000", "--read_step=1", "--save_secs=0.001", "--logdir=" + folder_.path()});
    ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 20)) << cluster.Describe();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100000));  // any moment is good
    cluster.Kill("worker", 0);
    EXPECT_EQ(cluster.task("ps", 0).Wait(), 1) << cluster.Describe();
    const std::string out = cluster.task("worker", 0).out();
    const int64_t first = std::stoll(out.substr(out.find("acked 1 ") + 8));
    EXPECT_GE(first, reached + 1) << "round " << round << cluster.Describe();
    reached = std::max<int64_t>(reached, StepOf(LatestCheckpoint(folder_.path())));
  }
  EXPECT_GT(reached, 0);
}

// Returns the global step of the task's first acknowledged step, or -1.
int64_t FirstStep(ProcessCluster& cluster, const std::string& job, int index) {
  const std::string out = cluster.task(job, index).out();
  const size_t at = out.find("acked 1 ");
  return at == std::string::npos ? -1 : std::stoll(out.substr(at + 8));
}

int64_t LastStep(ProcessCluster& cluster, const std::string& job, int index) {
  const std::string line = cluster.LastLine(job, index, "acked");
  return line.empty() ? -1 : std::stoll(line.substr(line.rfind(' ') + 1));
}

// The chief dies, and parameter servers live. The next chief goes on with what they hold, although the only checkpoint
// is of the beginning.
TEST_F(RestartTest, ARestartedChiefGoesOnWithLivingParameterServers) {
  for (const bool with_folder : {true, false}) {
    SCOPED_TRACE(with_folder);
    const std::vector<std::string> flags = {"--read_step=1", with_folder ? "--logdir=" + folder_.path() : "--logdir="};
    // What `cohort launch` gives to its tasks. Without a folder the chief knows its training by it.
    const ProcessCluster::Surroundings launched{.environment = {"COHORT_RUN_ID=3e1f"}};
    ProcessCluster cluster({{"ps", 2}, {"worker", 1}});
    for (int p = 0; p < 2; ++p) cluster.Start("ps", p);
    cluster.Start("worker", 0, flags, launched);
    ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 100)) << cluster.Describe();
    cluster.Kill("worker", 0);
    const int64_t reached = LastStep(cluster, "worker", 0);
    ASSERT_GE(reached, 100);
    cluster.Start("worker", 0, flags, launched);
    ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 1)) << cluster.Describe();
    EXPECT_GE(FirstStep(cluster, "worker", 0), reached + 1) << cluster.Describe();
    EXPECT_THAT(cluster.task("worker", 0).err(), HasSubstr("no step is lost")) << cluster.Describe();
  }
}

// Without a folder, a job that the launcher has not started again is another training.
TEST_F(RestartTest, AChiefOfAnotherJobInitializesTheVariables) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.Start("ps", 0);
  for (const char* job : {"COHORT_RUN_ID=first", "COHORT_RUN_ID=second"}) {
    cluster.Start("worker", 0, {"--read_step=1"}, {.environment = {job}});
    ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 20)) << cluster.Describe();
    EXPECT_EQ(FirstStep(cluster, "worker", 0), 1) << job << cluster.Describe();
    cluster.Kill("worker", 0);
  }
}

// A chief that stands still for longer than the others wait, and then goes on, takes nothing away from the training.
TEST_F(RestartTest, AChiefThatStoodStillGoesOnWithLivingParameterServers) {
  const std::vector<std::string> flags = {"--read_step=1", "--logdir=" + folder_.path(), "--silence_ms=1000",
                                          "--orphan_ms=600000"};
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.StartAll(flags);
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 50)) << cluster.Describe();
  cluster.Freeze("worker", 0);
  const int acked = cluster.CountLines("worker", 1, "acked");
  ASSERT_TRUE(cluster.WaitForLines("worker", 1, "acked", acked + 2000)) << cluster.Describe();
  std::this_thread::sleep_for(std::chrono::seconds(3));  // longer than --silence_ms
  const int64_t reached = LastStep(cluster, "worker", 1);
  cluster.Thaw("worker", 0);
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 1) << cluster.Describe();
  cluster.Start("worker", 0, flags);
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 1)) << cluster.Describe();
  EXPECT_GT(FirstStep(cluster, "worker", 0), reached) << cluster.Describe();
  EXPECT_THAT(cluster.task("worker", 0).err(), HasSubstr("no step is lost")) << cluster.Describe();
}

// A parameter server is started again alone. All variables go back to the checkpoint together, and the log says how
// many steps that costs.
TEST_F(RestartTest, ALostParameterServerCostsTheStepsAfterTheCheckpoint) {
  const std::vector<std::string> flags = {"--read_step=1", "--logdir=" + folder_.path()};
  ProcessCluster cluster({{"ps", 2}, {"worker", 1}});
  cluster.StartAll(flags);
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 100)) << cluster.Describe();
  const int64_t saved = StepOf(LatestCheckpoint(folder_.path()));
  ASSERT_GE(saved, 0);
  cluster.Kill("ps", 1);  // the global step is on ps 0
  cluster.Start("ps", 1, flags);
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 1) << cluster.Describe();
  cluster.Start("worker", 0, flags);
  ASSERT_TRUE(cluster.task("worker", 0).WaitForText("steps after it are lost")) << cluster.Describe();
  const std::string said = cluster.task("worker", 0).err();
  EXPECT_THAT(said, ::testing::ContainsRegex(StrCat("goes on at step ", saved, " of .*; [1-9][0-9]* steps after it")))
      << cluster.Describe();
  EXPECT_THAT(said, HasSubstr("A task of the parameters was started again")) << cluster.Describe();
}

TEST_F(RestartTest, AWorkerWaitsForALateParameterServer) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 1}});
  cluster.Start("worker", 0, {"--steps=20"});
  cluster.Start("ps", 0);
  ASSERT_TRUE(cluster.task("worker", 0).WaitForText("serving"));
  std::this_thread::sleep_for(std::chrono::seconds(3));  // the task is so late
  EXPECT_EQ(cluster.CountLines("worker", 0, "ready"), 0);
  cluster.Start("ps", 1);
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 0) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 0, "acked"), 20);
}

TEST_F(RestartTest, WhoNeverComesIsNamed) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 1}});
  cluster.Start("ps", 0, {"--orphan_ms=300"});
  cluster.Start("worker", 0, {"--connect_secs=1"});
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 1) << cluster.Describe();
  EXPECT_THAT(cluster.task("worker", 0).err(),
              AllOf(AnyOf(HasSubstr("chaos_task: Unavailable"), HasSubstr("chaos_task: DeadlineExceeded")),
                    HasSubstr("/job:ps/replica:0/task:1"), HasSubstr(cluster.address("ps", 1)),
                    Not(HasSubstr(cluster.address("ps", 0) + ") could not"))));
  EXPECT_EQ(cluster.task("ps", 0).Wait(), 1) << cluster.Describe();
}

}  // namespace
}  // namespace cohort::testing
