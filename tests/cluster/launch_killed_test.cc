// Tests that no process of `cohort launch` is left, whatever happens to the launcher. Each test starts two workers with
// helper processes, kills or signals something, and waits for the end of all processes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The processes that a task starts and leaves. They are in the task's process group, in a group of their own or in a
// session of their own. They hold its output or not, and have children or not.
constexpr char kStartHelpers[] =
    "sleep 600 & echo helper $!; sleep 600 >/dev/null 2>&1 & echo helper $!; "
    "setsid /bin/sh -c 'echo helper $$; exec sleep 600' & "
    "setsid /bin/sh -c 'setsid sleep 600 & echo helper $!; echo helper $$; wait' & "
    "echo launcher $PPID; echo task $$; ";
constexpr int kHelpers = 5;

TEST_F(LaunchTest, WhatTasksLeaveBehindIsEnded) {
  LaunchedProgram program(
      Shell({"--workers=2", "--kill-after=600"},
            std::string(kStartHelpers) + "until [ -e " + File("go") + " ]; do sleep 0.02; done; exit 0"));
  ASSERT_TRUE(program.WaitForText("helper ", 2 * kHelpers));
  const std::vector<WatchedProcess> helpers = Watch(NumbersAfter(program.out(), "helper "));
  std::ofstream(File("go")) << "";
  EXPECT_EQ(program.Wait(), 0);
  for (const WatchedProcess& helper : helpers) EXPECT_FALSE(helper.running());
  EXPECT_THAT(program.err(), HasSubstr("cohort launch: sending SIGTERM to what the tasks have left behind (pid "));
}

TEST_F(LaunchTest, WhatATaskHasStartedDoesNotOutliveItsRestart) {
  LaunchedProgram program(Shell({"--workers=1", "--restart=1", "--grace=600"},
                                "[ -e " + File("life") + " ] && { kill -0 $(cat " + File("life") +
                                    ") && echo alive; exit 0; }; "
                                    "sleep 600 & echo $! > " +
                                    File("life") + "; exit 1"));
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_THAT(program.out(), IsEmpty());
  EXPECT_THAT(program.err(), HasSubstr("No such process"));
}

TEST_F(LaunchTest, AReaderThatHangsDoesNotStopSignals) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  LaunchedProgram program(Shell({"--workers=2", "--kill_after=0.2"}, "echo begin >&2; exec yes"),
                          [&] { dup2(fds[1], 1); });
  ASSERT_TRUE(program.WaitForText("begin", 2));
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(), 128 + SIGTERM);
  close(fds[0]);
  close(fds[1]);
}

class LaunchKilledTest : public LaunchTest {
 protected:
  // Starts two workers with three helpers each. Watches all of them and the launcher's two processes.
  void Start(const std::vector<std::string>& more_flags = {}, const std::string& before = "",
             const std::function<void()>& in_child = nullptr) {
    std::vector<std::string> flags{"--workers=2"};
    flags.insert(flags.end(), more_flags.begin(), more_flags.end());
    program_ = std::make_unique<LaunchedProgram>(
        Shell(flags, before + kStartHelpers + "while true; do sleep 600; done"), in_child);
    ASSERT_TRUE(program_->WaitForText("helper ", 2 * kHelpers)) << program_->err();
    ASSERT_TRUE(program_->WaitForText("task ", 2));
    launcher_ = NumbersAfter(program_->out(), "launcher ").at(0);
    tasks_ = Watch(NumbersAfter(program_->out(), "task "));
    watched_ = Watch(NumbersAfter(program_->out(), "helper "));
    watched_.emplace_back(launcher_);
    for (const WatchedProcess& task : tasks_) ASSERT_TRUE(task.running());
    for (const WatchedProcess& process : watched_) ASSERT_TRUE(process.running());
  }
  // Checks that the launch had ended all processes when it ended itself.
  void ExpectAllEnded() const {
    for (const WatchedProcess& task : tasks_) EXPECT_FALSE(task.running());
    for (const WatchedProcess& process : watched_) EXPECT_FALSE(process.running());
  }
  void ExpectAllEnd() {
    for (const WatchedProcess& task : tasks_) EXPECT_TRUE(task.WaitForEnd());
    for (const WatchedProcess& process : watched_) EXPECT_TRUE(process.WaitForEnd());
  }

  std::unique_ptr<LaunchedProgram> program_;
  pid_t launcher_ = 0;  // the process that started the tasks, a child of program_
  std::vector<WatchedProcess> tasks_;
  std::vector<WatchedProcess> watched_;  // helpers and launcher_
};

TEST_F(LaunchKilledTest, KillingTheLauncherEndsAll) {
  Start();
  program_->Signal(SIGKILL);
  EXPECT_EQ(program_->Wait(), 128 + SIGKILL);
  ExpectAllEnd();
}

TEST_F(LaunchKilledTest, KillingTheLaunchersGroupEndsAll) {
  Start({}, "", [] { setpgid(0, 0); });
  kill(-program_->pid(), SIGKILL);
  EXPECT_EQ(program_->Wait(), 128 + SIGKILL);
  ExpectAllEnd();
}

TEST_F(LaunchKilledTest, KillingTheLaunchersChildEndsAll) {
  Start();
  ASSERT_NE(launcher_, program_->pid());
  kill(launcher_, SIGKILL);
  EXPECT_EQ(program_->Wait(), 128 + SIGKILL);
  ExpectAllEnded();
  EXPECT_THAT(program_->err(), HasSubstr("was killed by signal 9"));
}

TEST_F(LaunchKilledTest, KillingBothEndsTheTasks) {
  Start();
  kill(launcher_, SIGSTOP);  // so that it cannot do anything between the two signals
  program_->Signal(SIGKILL);
  kill(launcher_, SIGKILL);
  EXPECT_EQ(program_->Wait(), 128 + SIGKILL);
  for (const WatchedProcess& task : tasks_) EXPECT_TRUE(task.WaitForEnd());
  // No process is left that knows the helpers.
  for (const pid_t pid : NumbersAfter(program_->out(), "helper ")) kill(pid, SIGKILL);
  ExpectAllEnd();
}

TEST_F(LaunchKilledTest, SignalsEndAll) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Start({"--kill_after=600"});
    program_->Signal(signal);
    EXPECT_EQ(program_->Wait(), 128 + signal);
    ExpectAllEnded();
    EXPECT_THAT(program_->err(), HasSubstr(std::string("got SIG") + sigabbrev_np(signal) +
                                           "; sending SIGTERM to worker/0, then to worker/1"));
  }
}

// The chief and the other worker may still save what lies on the parameter server. So they get the signal before it,
// and end first, each in its own time.
TEST_F(LaunchTest, AParameterServerGetsSigtermAfterTheWorkersHaveEnded) {
  // Each task writes to one file when it gets the signal and when it ends. The builtin `wait` ends with a signal.
  const std::string log = File("log");
  LaunchedProgram program(Shell({"--ps=1", "--workers=2", "--kill_after=600"},
                                "is ps 0 && name=ps; is worker 0 && name=chief; is worker 1 && name=worker; "
                                "trap 'echo $name got it >> " +
                                    log + "; sleep 0.3; echo $name ends >> " + log +
                                    "; exit 0' TERM; sleep 600 & echo ready; while true; do wait; done"));
  ASSERT_TRUE(program.WaitForText("ready", 3)) << program.err();
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.err(), HasSubstr("got SIGTERM; sending SIGTERM to worker/0, then to worker/1, ps/0"));
  std::ifstream lines(log);
  const std::string text((std::istreambuf_iterator<char>(lines)), {});
  EXPECT_EQ(text, "chief got it\nchief ends\nworker got it\nworker ends\nps got it\nps ends\n");
}

TEST_F(LaunchKilledTest, ASecondSignalKills) {
  Start({"--kill_after=600"}, "trap '' TERM; ");
  program_->Signal(SIGTERM);
  ASSERT_TRUE(program_->WaitForText("got SIGTERM; sending SIGTERM"));
  program_->Signal(SIGINT);
  EXPECT_EQ(program_->Wait(), 128 + SIGTERM);
  EXPECT_THAT(program_->err(), HasSubstr("got SIGINT; killing what is left"));
  ExpectAllEnded();
}

TEST_F(LaunchKilledTest, WhoIgnoresSigtermIsKilledAfterASignal) {
  Start({"--kill_after=0.1"}, "trap '' TERM; ");
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 128 + SIGTERM);
  EXPECT_THAT(program_->err(), HasSubstr("sending SIGKILL"));
  ExpectAllEnded();
}

TEST_F(LaunchKilledTest, UnderNohupAHangupIsIgnored) {
  Start({"--kill_after=600"}, "", [] { signal(SIGHUP, SIG_IGN); });
  program_->Signal(SIGHUP);
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 128 + SIGTERM);
  EXPECT_THAT(program_->err(), Not(HasSubstr("SIGHUP")));
}

}  // namespace
}  // namespace cohort::testing
