// `cohort launch` runs a real training program, and the test kills its tasks from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string FileText(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class LaunchChaosTest : public ::testing::Test {
 protected:
  void Launch(const std::vector<std::string>& flags, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"/usr/bin/env", "COHORT_TOKEN=" + token_, COHORT_PROGRAM, "launch", "--ps=2",
                                     "--workers=2"};
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), {"--", LINEAR_REGRESSION, "--logdir=" + folder_.path(), "--steps_to_validate=100"});
    command.insert(command.end(), arguments.begin(), arguments.end());
    program_ = std::make_unique<LaunchedProgram>(command);
  }

  // Returns the processes of this launch, which it finds by the token in their environment. If `job` is given, returns
  // only those of this task.
  std::vector<pid_t> Processes(const std::string& job = "", int index = 0) const {
    std::vector<pid_t> found;
    const std::string task = StrCat("\"task\":{\"type\":\"", job, "\",\"index\":", index, "}");
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
      if (pid <= 0) continue;
      const std::string environment = FileText(entry.path() / "environ");
      if (environment.find(token_) == std::string::npos) continue;
      if (job.empty() || environment.find(task) != std::string::npos) found.push_back(pid);
    }
    return found;
  }
  // Returns the launcher's own processes.
  std::vector<pid_t> Launchers() const {
    std::vector<pid_t> launchers = Processes();
    for (const char* job : {"ps", "worker"}) {
      for (int index = 0; index < 2; ++index) std::erase(launchers, Processes(job, index).at(0));
    }
    return launchers;
  }
  // Returns the task's process.
  pid_t SignalTask(const std::string& job, int index, int signal) {
    const std::vector<pid_t> pids = Processes(job, index);
    EXPECT_EQ(pids.size(), 1u) << program_->err();
    if (pids.size() == 1) kill(pids[0], signal);
    return pids.empty() ? -1 : pids[0];
  }
  void KillTask(const std::string& job, int index) { SignalTask(job, index, SIGKILL); }
  // Stops the task as soon as its process is there, as a rule before it has a server.
  pid_t StopAtItsStart(const std::string& job, int index) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (Processes(job, index).empty() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return SignalTask(job, index, SIGSTOP);
  }

  const TempFolder folder_;
  const std::string token_ = StrCat("launch-chaos-", getpid(), "-", std::random_device{}());
  std::unique_ptr<LaunchedProgram> program_;
};

class LaunchKillTest : public LaunchChaosTest, public ::testing::WithParamInterface<std::pair<const char*, int>> {};

TEST_P(LaunchKillTest, TheFirstFailureIsNamedAndEverythingEnds) {
  const auto [job, index] = GetParam();
  Launch({"--grace=3"}, {});
  ASSERT_TRUE(program_->WaitForText("step: ", 3)) << program_->err();
  ASSERT_EQ(Processes().size(), 6u) << "four tasks and the launcher's two";
  KillTask(job, index);
  EXPECT_EQ(program_->Wait(), 128 + SIGKILL) << program_->err();
  EXPECT_THAT(program_->err(), ContainsRegex(StrCat("cohort launch: ", job, "/", index,
                                                    " \\(pid [0-9]+\\) was killed by signal 9 \\(Killed\\)")));
  EXPECT_TRUE(Processes().empty());
  if (std::string(job) == "ps") {  // each worker says why it ended
    for (int w = 0; w < 2; ++w) {
      EXPECT_THAT(program_->err(),
                  ContainsRegex(StrCat("\\[worker/", w, "\\] .*Unavailable.*/job:ps/replica:0/task:", index)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, LaunchKillTest,
                         ::testing::Values(std::pair{"ps", 1}, std::pair{"worker", 0}, std::pair{"worker", 1}),
                         [](const auto& info) { return StrCat(info.param.first, info.param.second); });

TEST_F(LaunchChaosTest, AWorkerIsStartedAgainAndTrainingGoesOn) {
  Launch({"--restart=1"}, {"--max_steps=6000"});
  ASSERT_TRUE(program_->WaitForText("step: ", 3)) << program_->err();
  KillTask("worker", 1);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), AllOf(HasSubstr("worker/1"), HasSubstr("was killed by signal 9")));
  EXPECT_THAT(program_->out(), AllOf(HasSubstr("[worker/0] worker 0: "), HasSubstr("[worker/1] worker 1: ")));
  EXPECT_TRUE(Processes().empty());
}

// The variables of the killed server are lost. The workers fail, are started again, and restore the checkpoint.
TEST_F(LaunchChaosTest, AParameterServerIsStartedAgainAndTrainingGoesOnFromTheCheckpoint) {
  Launch({"--restart=2"}, {"--max_steps=6000", "--save_model_secs=0.2"});
  for (int lines = 1; LatestCheckpoint(folder_.path()).empty(); ++lines) {
    ASSERT_TRUE(program_->WaitForText("step: ", lines)) << program_->err();
  }
  KillTask("ps", 0);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(),
              AllOf(HasSubstr("ps/0"), HasSubstr("was killed by signal 9"), HasSubstr("Restoring parameters from")));
  EXPECT_TRUE(Processes().empty());
}

// Each task finishes its step. The chief then saves, and all leave with 0.
TEST_F(LaunchChaosTest, SigtermSavesAndEndsWithZero) {
  Launch({}, {"--max_steps=100000000", "--save_model_secs=600"});
  ASSERT_TRUE(program_->WaitForText("step: ", 10)) << program_->err();
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), ContainsRegex("\\[worker/0\\] .*Got SIGTERM: the training stops after its step"));
  const std::string saved = LatestCheckpoint(folder_.path());
  ASSERT_NE(saved, "") << program_->err();
  EXPECT_GT(std::stoll(saved.substr(saved.rfind('-') + 1)), 0) << saved;
  EXPECT_TRUE(Processes().empty());
}

// The workers end because the ps ends. Only the ps uses up its restarts.
TEST_F(LaunchChaosTest, AnEndThatFollowsFromAnotherDoesNotCount) {
  Launch({"--restart=2"}, {"--max_steps=100000000", "--save_model_secs=0.2"});
  for (int kills = 1; kills <= 2; ++kills) {
    const std::string restarted = StrCat("(", kills, " of 2)");
    ASSERT_TRUE(program_->WaitForText("step: ", 3 * kills)) << program_->err();
    KillTask("ps", 0);
    ASSERT_TRUE(program_->WaitForText(restarted)) << program_->err();
  }
  ASSERT_TRUE(program_->WaitForText("this follows from the end of another task, and does not count"))
      << program_->err();
  ASSERT_TRUE(program_->WaitForText("step: ", 12)) << program_->err();
  program_->Signal(SIGTERM);
  program_->Wait();
  EXPECT_THAT(program_->err(), ::testing::Not(ContainsRegex("worker/[01] [^\n]* \\([12] of 2\\)")));
  EXPECT_TRUE(Processes().empty());
}

// It would stay stopped for ever, and the steps would wait for it.
TEST_F(LaunchChaosTest, AStoppedParameterServerIsNamedAndReplaced) {
  Launch({"--restart=5", "--unhealthy_after=2"}, {"--max_steps=20000", "--save_model_secs=0.2"});
  for (int lines = 1; LatestCheckpoint(folder_.path()).empty(); ++lines) {
    ASSERT_TRUE(program_->WaitForText("step: ", lines)) << program_->err();
  }
  const pid_t pid = SignalTask("ps", 0, SIGSTOP);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(
      program_->err(),
      AllOf(ContainsRegex(StrCat("cohort launch: ps/0 \\(pid ", pid, "\\) is stopped \\(state T\\) and has not ",
                                 "answered the launcher for [0-9.]+ s; killing it")),
            ContainsRegex(StrCat("ps/0 \\(pid ", pid, "\\) was killed by signal 9 [^\n]*starting it again")),
            HasSubstr("Restoring parameters from")));
  EXPECT_TRUE(Processes().empty());
}

TEST_F(LaunchChaosTest, WithoutRestartsAStoppedTaskEndsTheLaunch) {
  Launch({"--unhealthy_after=2", "--grace=3"}, {"--max_steps=100000000"});
  ASSERT_TRUE(program_->WaitForText("[worker/1] step: ")) << program_->err();
  SignalTask("worker", 1, SIGSTOP);
  EXPECT_EQ(program_->Wait(), 128 + SIGKILL) << program_->err();
  EXPECT_THAT(program_->err(), ContainsRegex("worker/1 \\(pid [0-9]+\\) is stopped \\(state T\\)"));
  EXPECT_TRUE(Processes().empty());
}

// The chief says that training is done, and ends. The stopped worker then has the time of --grace.
TEST_F(LaunchChaosTest, AStoppedWorkerDoesNotOutliveTheTraining) {
  Launch({"--unhealthy_after=100000", "--grace=2"}, {"--max_steps=20000"});
  ASSERT_TRUE(program_->WaitForText("[worker/1] step: ")) << program_->err();
  SignalTask("worker", 1, SIGSTOP);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->out(), HasSubstr("[worker/0] worker 0: "));
  EXPECT_THAT(program_->err(),
              ContainsRegex("worker/1 \\(pid [0-9]+\\) is stopped \\(state T\\) and has not answered the "
                            "launcher for [0-9.]+ s, and training is done; sending SIGTERM"));
  EXPECT_TRUE(Processes().empty());
}

// Then it has not called the launcher, but the launcher sees that it is stopped.
TEST_F(LaunchChaosTest, AWorkerThatIsStoppedAtItsStartDoesNotOutliveTheTraining) {
  Launch({"--unhealthy_after=100000", "--grace=2"}, {"--max_steps=5000"});
  StopAtItsStart("worker", 1);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(),
              ContainsRegex("worker/1 \\(pid [0-9]+\\) is stopped \\(state T\\)[^\n]*, and training is "
                            "done; sending SIGTERM"));
  EXPECT_TRUE(Processes().empty());
}

// Nobody could train without it.
TEST_F(LaunchChaosTest, AParameterServerThatIsStoppedAtItsStartIsReplaced) {
  Launch({"--restart=1", "--unhealthy_after=5"}, {"--max_steps=2000"});
  const pid_t pid = StopAtItsStart("ps", 1);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(),
              AllOf(ContainsRegex(StrCat("cohort launch: ps/1 \\(pid ", pid, "\\) is stopped \\(state T\\)")),
                    ContainsRegex(StrCat("ps/1 \\(pid ", pid, "\\) was killed by signal 9 [^\n]*starting it again"))));
  EXPECT_TRUE(Processes().empty());
}

// The launcher is stopped while the chief says that training is done and ends. It reads that later, and does not wait
// for the stopped worker.
TEST_F(LaunchChaosTest, AStoppedLauncherHearsThatTrainingIsDone) {
  Launch({"--unhealthy_after=100000", "--grace=2"}, {"--max_steps=20000"});
  ASSERT_TRUE(program_->WaitForText("[worker/1] step: ")) << program_->err();
  const pid_t chief = Processes("worker", 0).at(0);
  const std::vector<pid_t> launchers = Launchers();
  ASSERT_EQ(launchers.size(), 2u);
  SignalTask("worker", 1, SIGSTOP);
  for (const pid_t pid : launchers) kill(pid, SIGSTOP);
  EXPECT_TRUE(WatchedProcess(chief).WaitForEnd());
  for (const pid_t pid : launchers) kill(pid, SIGCONT);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), HasSubstr("and training is done; sending SIGTERM"));
  EXPECT_TRUE(Processes().empty());
}

// A launcher that was stopped itself, for example by Ctrl-Z, has not heard answers, but the tasks have given them.
TEST_F(LaunchChaosTest, AStoppedLauncherDoesNotBlameItsTasks) {
  Launch({"--unhealthy_after=4"}, {"--max_steps=100000000"});
  ASSERT_TRUE(program_->WaitForText("step: ", 3)) << program_->err();
  const std::vector<pid_t> launchers = Launchers();
  ASSERT_EQ(launchers.size(), 2u);
  for (const pid_t pid : launchers) kill(pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(10));
  for (const pid_t pid : launchers) kill(pid, SIGCONT);
  ASSERT_TRUE(program_->WaitForText("step: ", 30)) << program_->err();
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), ::testing::Not(HasSubstr("has not answered")));
}

}  // namespace
}  // namespace cohort::testing
