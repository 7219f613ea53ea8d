// Fit under a ParameterServerStrategy, in real processes: a task of each role is killed, or frozen and continued. The
// training ends with every step made once, or with an error that names the lost task; then it is started again and goes
// on from the newest backup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <regex>
#include <thread>

#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kSteps = 150;
constexpr int kBatch = 4;
constexpr int kEpochs = 4;

class ParameterServerFitChaos : public ::testing::Test {
 protected:
  void SetUp() override {
    UseTestToken();
    for (const char* job : {"ps", "worker"}) {
      for (int task = 0; task < 2; ++task) Start(job, task);
    }
    Start("chief", 0);
  }
  void Start(const std::string& job, int task) { cluster_.Start(job, task, {folder_ / "backup", StrCat(kSteps)}); }
  // Waits until the chief has begun the epoch, and a little longer, so that steps are under way.
  void AwaitEpoch(int epoch) {
    ASSERT_TRUE(cluster_.WaitForLines("chief", 0, StrCat("epoch ", epoch, "\n"), 1)) << cluster_.Describe();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  // The chief ends. Each epoch that it has trained has counted each example once, and all updates were made.
  void ExpectEnd() {
    EXPECT_EQ(cluster_.task("chief", 0).Wait(), 0) << cluster_.Describe();
    const std::string out = cluster_.task("chief", 0).out();
    EXPECT_THAT(out, HasSubstr(StrCat("end ", kEpochs * kSteps, "\n"))) << cluster_.Describe();
    const std::regex line("seen ([0-9.e+]+)\n");
    int epochs = 0;
    for (auto it = std::sregex_iterator(out.begin(), out.end(), line); it != std::sregex_iterator(); ++it, ++epochs) {
      EXPECT_EQ(std::atof((*it)[1].str().c_str()), kSteps * kBatch) << out;
    }
    EXPECT_GT(epochs, 0) << out;
  }
  // The chief fails in time, and names the task.
  void ExpectFailure(const std::string& job, int task) {
    EXPECT_EQ(cluster_.task("chief", 0).Wait(), 1) << cluster_.Describe();
    EXPECT_THAT(cluster_.task("chief", 0).err(),
                AnyOf(HasSubstr(ProcessCluster::FullName(job, task)), HasSubstr(StrCat("/job:", job, "/task:", task))));
  }

  const TempFolder folder_;
  ProcessCluster cluster_{{{"chief", 1}, {"ps", 2}, {"worker", 2}}, {PS_FIT_TASK}};
};

TEST_F(ParameterServerFitChaos, AKilledWorkerCostsNothing) {
  AwaitEpoch(1);
  cluster_.Kill("worker", 1);
  AwaitEpoch(2);
  Start("worker", 1);
  ExpectEnd();
}

TEST_F(ParameterServerFitChaos, AFrozenWorkerCostsNothing) {
  AwaitEpoch(1);
  cluster_.Freeze("worker", 1);
  AwaitEpoch(3);
  cluster_.Thaw("worker", 1);
  ExpectEnd();
}

TEST_F(ParameterServerFitChaos, AfterAKilledParameterServerTheNewestBackupIsUsed) {
  AwaitEpoch(2);
  cluster_.Kill("ps", 0);
  ExpectFailure("ps", 0);
  Start("ps", 0);
  Start("chief", 0);
  ExpectEnd();
  EXPECT_THAT(cluster_.task("chief", 0).err(), HasSubstr(StrCat("training goes on from step ", 2 * kSteps)));
}

TEST_F(ParameterServerFitChaos, AfterAFrozenParameterServerTheNewestBackupIsUsed) {
  AwaitEpoch(2);
  cluster_.Freeze("ps", 1);
  ExpectFailure("ps", 1);
  cluster_.Thaw("ps", 1);
  Start("chief", 0);
  ExpectEnd();
  // The parameter servers have kept their values.
  EXPECT_TRUE(std::regex_search(cluster_.task("chief", 0).err(), std::regex("([0-9]+|no) steps are lost")))
      << cluster_.Describe();
  EXPECT_THAT(cluster_.task("chief", 0).err(), HasSubstr(StrCat("training goes on from step ", 2 * kSteps)));
}

TEST_F(ParameterServerFitChaos, AfterAKilledChiefTheNewestBackupIsUsed) {
  AwaitEpoch(2);
  cluster_.Kill("chief", 0);
  Start("chief", 0);
  ExpectEnd();
  EXPECT_TRUE(std::regex_search(cluster_.task("chief", 0).err(), std::regex("([0-9]+|no) steps are lost")))
      << cluster_.Describe();
  EXPECT_THAT(cluster_.task("chief", 0).err(), HasSubstr(StrCat("training goes on from step ", 2 * kSteps)));
}

// The other tasks take the chief for lost, and forget its sessions. When it goes on, it opens new ones.
TEST_F(ParameterServerFitChaos, AFrozenChiefGoesOn) {
  AwaitEpoch(1);
  cluster_.Freeze("chief", 0);
  std::this_thread::sleep_for(std::chrono::seconds(3));  // longer than the silence limit
  cluster_.Thaw("chief", 0);
  ExpectEnd();
}

}  // namespace
}  // namespace cohort::testing
