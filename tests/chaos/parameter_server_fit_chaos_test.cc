// Fit under a ParameterServerStrategy, in real processes: a task of each role is killed, or frozen and continued. The
// training ends with every step made once, or with an error that names the lost task; then it is started again and goes
// on from the newest backup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <regex>
#include <thread>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSteps = 150;
constexpr int kBatch = 4;

// The training goes on until the test allows its end, so a fault always meets a training that is under way, however
// slow the machine is.
class ParameterServerFitChaos : public ::testing::Test {
 protected:
  void SetUp() override {
    UseTestToken();
    for (const char* job : {"ps", "worker"}) {
      for (int task = 0; task < 2; ++task) Start(job, task);
    }
    Start("chief", 0);
  }
  void Start(const std::string& job, int task) {
    cluster_.Start(job, task, {folder_ / "backup", StrCat(kSteps), folder_ / "end"});
  }
  // Waits until the chief has begun `more` further epochs, and a little longer, so that steps are under way.
  void AwaitEpochs(int more) {
    const int begun = cluster_.CountLines("chief", 0, "epoch ");
    ASSERT_TRUE(cluster_.WaitForLines("chief", 0, "epoch ", begun + more)) << cluster_.Describe();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  // Returns the number of the epoch that the chief has begun last.
  int LastEpoch() { return std::atoi(cluster_.LastLine("chief", 0, "epoch ").substr(6).c_str()); }
  // Lets the training end. Each epoch that the chief has trained has counted each example once, and all updates were
  // made. The first epoch of this chief has not counted the `left_out` steps that an earlier chief has made.
  void ExpectEnd(int left_out = 0) {
    std::ofstream(folder_ / "end") << "end";
    EXPECT_EQ(cluster_.task("chief", 0).Wait(), 0) << cluster_.Describe();
    const std::string out = cluster_.task("chief", 0).out();
    EXPECT_THAT(out, HasSubstr(StrCat("end ", (LastEpoch() + 1) * kSteps, "\n"))) << cluster_.Describe();
    const std::regex line("seen ([0-9.e+]+)\n");
    int epochs = 0;
    for (auto it = std::sregex_iterator(out.begin(), out.end(), line); it != std::sregex_iterator(); ++it, ++epochs) {
      const int steps = epochs == 0 ? kSteps - left_out : kSteps;
      EXPECT_EQ(std::atof((*it)[1].str().c_str()), steps * kBatch) << out;
    }
    EXPECT_GT(epochs, 0) << out;
  }
  // The chief fails in time, and names the task.
  void ExpectFailure(const std::string& job, int task) {
    EXPECT_EQ(cluster_.task("chief", 0).Wait(), 1) << cluster_.Describe();
    EXPECT_THAT(cluster_.task("chief", 0).err(),
                AnyOf(HasSubstr(ProcessCluster::FullName(job, task)), HasSubstr(StrCat("/job:", job, "/task:", task))));
  }
  // Starts the chief again, which uses the newest backup. That is of the start of the epoch that the chief before it
  // had begun last, or of this epoch's end.
  void ExpectNewestBackup() {
    const int epoch = LastEpoch();
    Start("chief", 0);
    ExpectEnd();
    EXPECT_THAT(cluster_.task("chief", 0).err(),
                AnyOf(HasSubstr(StrCat("training goes on from step ", epoch * kSteps, " ")),
                      HasSubstr(StrCat("training goes on from step ", (epoch + 1) * kSteps, " "))));
  }
  // Starts the chief again, which goes on with the values of the parameter servers, so that no step is lost.
  void ExpectStepsOfParameterServers() {
    const int epoch = LastEpoch();
    Start("chief", 0);
    ASSERT_TRUE(cluster_.WaitForLines("chief", 0, "seen ", 1)) << cluster_.Describe();
    const std::string err = cluster_.task("chief", 0).err();
    std::smatch found;
    ASSERT_TRUE(std::regex_search(err, found,
                                  std::regex("no steps are lost: the parameter servers hold this training, which goes "
                                             "on from step ([0-9]+), ([0-9]+) steps after")))
        << cluster_.Describe();
    const int step = std::atoi(found[1].str().c_str()), more = std::atoi(found[2].str().c_str());
    EXPECT_GE(step, epoch * kSteps);
    EXPECT_LE(step, (epoch + 1) * kSteps);
    EXPECT_EQ((step - more) % kSteps, 0) << "the backup is of the start of an epoch";
    ExpectEnd(more);
  }
  const TempFolder folder_;
  ProcessCluster cluster_{{{"chief", 1}, {"ps", 2}, {"worker", 2}}, {PS_FIT_TASK}};
};

TEST_F(ParameterServerFitChaos, AKilledWorkerCostsNothing) {
  AwaitEpochs(2);
  cluster_.Kill("worker", 1);
  AwaitEpochs(1);
  Start("worker", 1);
  AwaitEpochs(1);
  ExpectEnd();
}

TEST_F(ParameterServerFitChaos, AFrozenWorkerCostsNothing) {
  AwaitEpochs(2);
  cluster_.Freeze("worker", 1);
  AwaitEpochs(2);
  cluster_.Thaw("worker", 1);
  AwaitEpochs(1);
  ExpectEnd();
}

TEST_F(ParameterServerFitChaos, AfterAKilledParameterServerTheNewestBackupIsUsed) {
  AwaitEpochs(3);
  cluster_.Kill("ps", 0);
  ExpectFailure("ps", 0);
  Start("ps", 0);
  ExpectNewestBackup();
}

// As under `cohort launch --restart`: the parameter server is there again before the limit for its absence is over.
TEST_F(ParameterServerFitChaos, AParameterServerThatIsStartedAgainAtOnceIsNamed) {
  AwaitEpochs(3);
  cluster_.Kill("ps", 0);
  Start("ps", 0);
  ExpectFailure("ps", 0);
  const std::string err = cluster_.task("chief", 0).err();
  EXPECT_THAT(err, HasSubstr("was started again")) << cluster_.Describe();
  EXPECT_THAT(err, Not(HasSubstr("uninitialized"))) << cluster_.Describe();
  ExpectNewestBackup();
}

TEST_F(ParameterServerFitChaos, AFrozenParameterServerHasKeptItsSteps) {
  AwaitEpochs(3);
  cluster_.Freeze("ps", 1);
  ExpectFailure("ps", 1);
  cluster_.Thaw("ps", 1);
  ExpectStepsOfParameterServers();
}

TEST_F(ParameterServerFitChaos, AfterAKilledChiefTheParameterServersKeepTheirSteps) {
  AwaitEpochs(3);
  cluster_.Kill("chief", 0);
  ExpectStepsOfParameterServers();
}

// The queued steps are finished and saved, so no step is lost, and the epoch in which the signal has come counts each
// example once.
TEST_F(ParameterServerFitChaos, SigtermToTheChiefSavesAndTheNextChiefGoesOn) {
  AwaitEpochs(1);
  cluster_.task("chief", 0).Signal(SIGTERM);
  EXPECT_EQ(cluster_.task("chief", 0).Wait(), 0) << cluster_.Describe();
  std::smatch steps;
  const std::string out = cluster_.task("chief", 0).out();
  ASSERT_TRUE(std::regex_search(out, steps, std::regex("interrupted after ([0-9]+) steps"))) << cluster_.Describe();
  EXPECT_THAT(cluster_.task("chief", 0).err(), HasSubstr("SIGTERM has interrupted the training"));
  Start("chief", 0);
  ExpectEnd();
  EXPECT_THAT(cluster_.task("chief", 0).err(),
              HasSubstr(StrCat("goes on from step ", steps[1].str(), ", 0 steps after")));
}

// The launcher first ends the chief, which saves, and then the tasks that only serve.
TEST_F(ParameterServerFitChaos, SigtermToTheLauncherSavesAndEndsWithZero) {
  const std::string backup = folder_ / "backup-of-launch";
  LaunchedProgram launch({COHORT_PROGRAM, "launch", "--chief", "--ps=1", "--workers=2", "--", PS_FIT_TASK, backup,
                          StrCat(kSteps), folder_ / "end-of-launch"});
  ASSERT_TRUE(launch.WaitForText("epoch 1\n")) << launch.err();
  launch.Signal(SIGTERM);
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_THAT(launch.out(), HasSubstr("interrupted after "));
  EXPECT_TRUE(FileExists(backup + "/latest.weights.h5"));
}

// The other tasks take the chief for lost, and forget its sessions. When it goes on, it opens new ones.
TEST_F(ParameterServerFitChaos, AFrozenChiefGoesOn) {
  AwaitEpochs(2);
  cluster_.Freeze("chief", 0);
  std::this_thread::sleep_for(std::chrono::seconds(3));  // longer than the silence limit
  cluster_.Thaw("chief", 0);
  AwaitEpochs(1);
  ExpectEnd();
}

}  // namespace
}  // namespace cohort::testing
