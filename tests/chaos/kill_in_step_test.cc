// Tests that kill a worker or the chief inside a step. The parameter servers are frozen first, so that the step has
// begun and cannot end. They go on when the process is dead. The step is applied as a whole or not at all. The other
// worker goes on. A new run starts from the newest intact checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/counting_model.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kVariables = 4;

// The parameter is the number of elements of each variable. The large variables travel in chunks on the bulk streams,
// so a frozen server has received a part of them.
class KillInStepTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    UseTestToken();
    training_ = {"--silence_ms=600000",         "--orphan_ms=600000",         "--say_starts=1",
                 StrCat("--size=", GetParam()), "--logdir=" + folder_.path(), "--save_secs=0.2"};
    cluster_ = std::make_unique<ProcessCluster>(std::map<std::string, int>{{"ps", 2}, {"worker", 2}});
    cluster_->StartAll(training_);
    for (int w = 0; w < 2; ++w) AwaitSteps(w, 10);
  }

  void AwaitSteps(int worker, int more) {
    const int before = cluster_->CountLines("worker", worker, "acked");
    ASSERT_TRUE(cluster_->WaitForLines("worker", worker, "acked", before + more)) << cluster_->Describe();
  }
  // Kills `worker` between the beginning and the end of one of its steps. Adds the steps of the killed process to the
  // counts.
  void KillInAStep(int worker) {
    for (int p = 0; p < 2; ++p) cluster_->Freeze("ps", p);
    // The bytes that the servers have sent before arrive, and the next step begins. No other step can end from here on.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    CountAndKill(worker);
    EXPECT_TRUE(in_a_step_) << cluster_->Describe();
    for (int p = 0; p < 2; ++p) cluster_->Thaw("ps", p);
  }
  void CountAndKill(int worker) {
    cluster_->Kill("worker", worker);
    const int acknowledged = cluster_->CountLines("worker", worker, "acked");
    in_a_step_ = cluster_->CountLines("worker", worker, "started") == acknowledged + 1;
    acknowledged_ += acknowledged;
    if (in_a_step_) ++begun_;
    EXPECT_EQ(cluster_->CountLines("worker", worker, "failed"), 0) << cluster_->Describe();
  }
  // Checks the steps of all worker processes, when none of them runs. Every acknowledged step is in every variable
  // once. Every step that was begun is on each server as a whole or not at all.
  void ExpectWholeSteps() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    ModelState state;
    do {  // a step that had begun when its session ended may still be under way
      state = ReadModel(cluster_->spec(), kVariables, GetParam());  // throws if a variable has only a part of an update
    } while ((state.applied[0] != state.applied[2] || state.applied[1] != state.applied[3]) &&
             std::chrono::steady_clock::now() < deadline);
    EXPECT_EQ(state.applied[0], state.applied[2]);  // ps/1
    EXPECT_EQ(state.applied[1], state.applied[3]);  // ps/0
    for (const int64_t applied : state.applied) {
      EXPECT_GE(applied, acknowledged_);
      EXPECT_LE(applied, acknowledged_ + begun_);
      EXPECT_GE(applied, state.global_step);
    }
    EXPECT_GE(state.global_step, acknowledged_);
  }

  // Starts a cluster of new processes on the same folder, and returns its first step.
  int64_t FirstStepOfANewRun() {
    cluster_ = std::make_unique<ProcessCluster>(std::map<std::string, int>{{"ps", 2}, {"worker", 1}});
    cluster_->StartAll({StrCat("--size=", GetParam()), "--logdir=" + folder_.path(), "--steps=1", "--read_step=1"});
    EXPECT_EQ(cluster_->task("worker", 0).Wait(), 0) << cluster_->Describe();
    const std::string line = cluster_->LastLine("worker", 0, "acked 1 ");
    return line.empty() ? -1 : std::stoll(line.substr(8));
  }

  const TempFolder folder_;
  std::unique_ptr<ProcessCluster> cluster_;
  Arguments training_;
  int64_t acknowledged_ = 0, begun_ = 0;  // steps of workers that are dead
  bool in_a_step_ = false;                // whether the worker that was killed last was inside a step
};

INSTANTIATE_TEST_SUITE_P(Sizes, KillInStepTest, ::testing::Values(4, 500'000),
                         [](const auto& info) { return info.param == 4 ? "Small" : "Large"; });

TEST_P(KillInStepTest, AWorker) {
  for (int round = 0; round < 3; ++round) {
    KillInAStep(1);
    AwaitSteps(0, 10);
    cluster_->Start("worker", 1, training_);
    AwaitSteps(1, 10);
  }
  CountAndKill(1);
  CountAndKill(0);
  ExpectWholeSteps();
}

TEST_P(KillInStepTest, TheChief) {
  KillInAStep(0);
  AwaitSteps(1, 10);  // this worker does not depend on the chief
  CountAndKill(1);
  ExpectWholeSteps();
  const std::string newest = LatestCheckpoint(folder_.path());
  ASSERT_NE(newest, "");
  const int64_t saved = BundleReader(newest).Read("global_step").scalar<int64_t>();
  EXPECT_EQ(FirstStepOfANewRun(), saved + 1) << cluster_->Describe();
  EXPECT_THAT(cluster_->task("worker", 0).err(), HasSubstr("Restoring parameters from " + newest));
}

}  // namespace
}  // namespace cohort::testing
