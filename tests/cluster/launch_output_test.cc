// Tests of the environment and descriptors that the tasks of `cohort launch` get, and of their output: files, prefixes,
// and progress bars on a terminal.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST_F(LaunchTest, OutputIsLabelledAndTheEndIsGood) {
  LaunchedProgram program(
      Shell({"--workers=2", "--ps=1", "--chief", "--evaluator"}, "echo out; printf end; printf tail >&2"));
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_EQ(SortedLines(program.out()),
            (std::vector<std::string>{"[chief/0] end", "[chief/0] out", "[evaluator/0] end", "[evaluator/0] out",
                                      "[ps/0] end", "[ps/0] out", "[worker/0] end", "[worker/0] out", "[worker/1] end",
                                      "[worker/1] out"}));
  EXPECT_EQ(SortedLines(program.err()), (std::vector<std::string>{"[chief/0] tail", "[evaluator/0] tail", "[ps/0] tail",
                                                                  "[worker/0] tail", "[worker/1] tail"}));
}

// By default a program that writes to a pipe keeps its lines back until its end.
TEST_F(LaunchTest, LinesArriveBeforeTheTaskEnds) {
  for (const std::string what : {"session", "server", "model"}) {
    LaunchedProgram program(Launch({"--workers=1"}, {PRINTING_TASK, what}));
    EXPECT_TRUE(program.WaitForText("[worker/0] made a " + what + "\n")) << program.out() << program.err();
    program.Signal(SIGTERM);
    EXPECT_EQ(program.Wait(), 128 + SIGTERM);
  }
}

TEST_F(LaunchTest, ThreadsOfTasksThatShareCoresHardlySpin) {
  const auto nothing_set = [] { unsetenv("GOMP_SPINCOUNT"), unsetenv("OMP_WAIT_POLICY"); };
  const std::string print = "is worker 0 && echo \"$GOMP_SPINCOUNT/$OMP_WAIT_POLICY\"; exit 0";
  LaunchedProgram shared(Shell({"--workers=1", "--ps=1", "--threads_per_task=60000"}, print), nothing_set);
  EXPECT_EQ(shared.Wait(), 0) << shared.err();
  EXPECT_EQ(shared.out(), "[worker/0] 1000/passive\n");
  LaunchedProgram alone(Shell({"--workers=1", "--threads_per_task=1"}, print), nothing_set);
  EXPECT_EQ(alone.Wait(), 0) << alone.err();
  EXPECT_EQ(alone.out(), "[worker/0] /\n");
}

TEST_F(LaunchTest, TasksInheritNothingButTheirOutput) {
  LaunchedProgram descriptors(Launch({"--workers=2", "--ps=1"}, {LAUNCHED_TASK, "descriptors"}),
                              [] { dup2(0, 57), fcntl(57, F_SETFD, 0); });
  EXPECT_EQ(descriptors.Wait(), 0);
  EXPECT_EQ(descriptors.out() + descriptors.err(), "");
  LaunchedProgram signals(Launch({"--workers=1"}, {LAUNCHED_TASK, "signals"}));
  EXPECT_EQ(signals.Wait(), 0);
  EXPECT_EQ(signals.out() + signals.err(), "");
}

TEST_F(LaunchTest, ClosedStandardDescriptorsDoNotMatter) {
  LaunchedProgram program(
      Shell({"--workers=1", "--output-dir=" + folder_.path()}, "echo out; echo err >&2; read x; exit 0"),
      [] { close(0), close(1), close(2); });
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_THAT(FileText(File("worker-0.log")), HasSubstr("out\n"));
  EXPECT_THAT(FileText(File("worker-0.log")), HasSubstr("err\n"));
}

TEST_F(LaunchTest, OutputGoesToFilesToo) {
  const std::string folder = File("a/b");
  LaunchedProgram program(
      Launch({"--workers=2", "--output_dir=" + folder, "--color=always"}, {LAUNCHED_TASK, "chatter"}));
  EXPECT_EQ(program.Wait(), 0);
  for (int i = 0; i < 2; ++i) {
    const std::string text = FileText(folder + "/worker-" + std::to_string(i) + ".log");
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10001);
    EXPECT_EQ(text.substr(text.size() - 8), std::string("nul\0end\n", 8));
    EXPECT_EQ(text.find('['), std::string::npos);
  }
  const std::string out = program.out();
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 20002);
  EXPECT_THAT(out, HasSubstr("\033[36m[worker/0]\033[0m aaa\n"));
  EXPECT_EQ(out.find("ab"), std::string::npos);  // no line contains text of another task
  EXPECT_EQ(out.find("ba"), std::string::npos);
}

TEST_F(LaunchTest, TheEnvironmentOfATask) {
  LaunchedProgram own(Shell({"--workers=1", "--threads_per_task=3"}, "echo $COHORT_TOKEN $OMP_NUM_THREADS"), [] {
    setenv("COHORT_TOKEN", "mine", 1);
    setenv("OMP_NUM_THREADS", "7", 1);
  });
  EXPECT_EQ(own.Wait(), 0);
  EXPECT_EQ(own.out(), "[worker/0] mine 3\n");
  LaunchedProgram fresh(Shell({"--workers=2"}, "echo $COHORT_TOKEN"), [] { unsetenv("COHORT_TOKEN"); });
  EXPECT_EQ(fresh.Wait(), 0);
  EXPECT_THAT(fresh.out(), ContainsRegex("^\\[worker/0\\] [0-9a-f]{32}\n|^\\[worker/1\\] [0-9a-f]{32}\n"));
  const std::string token = fresh.out().substr(11, 32);
  EXPECT_THAT(fresh.out().substr(44), HasSubstr(token));
}

TEST_F(LaunchTest, TheLimitsOfServersAreInTheEnvironmentOfATask) {
  const char* const script = "echo \"<$COHORT_ORPHAN_TIMEOUT> <$COHORT_CHIEF_TIMEOUT>\"";
  LaunchedProgram given(Shell({"--workers=1", "--orphan_timeout=2.5", "--chief-timeout=0"}, script),
                        [] { setenv("COHORT_ORPHAN_TIMEOUT", "7", 1); });
  EXPECT_EQ(given.Wait(), 0);
  EXPECT_EQ(given.out(), "[worker/0] <2.5> <0>\n");
  LaunchedProgram inherited(Shell({"--workers=1"}, script), [] {
    setenv("COHORT_ORPHAN_TIMEOUT", "7", 1);
    unsetenv("COHORT_CHIEF_TIMEOUT");
  });
  EXPECT_EQ(inherited.Wait(), 0);
  EXPECT_EQ(inherited.out(), "[worker/0] <7> <>\n");
}

// Only a Server connects to the launcher. This program has none, so nobody expects answers of it.
TEST_F(LaunchTest, AProgramWithoutAServerIsNotJudged) {
  LaunchedProgram program(
      Shell({"--workers=2", "--unhealthy_after=0.2"},
            "echo \"<$COHORT_HEALTH>\"; (sleep 2; kill -CONT $$) & kill -STOP $$; wait; echo went on"));
  EXPECT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.out(), ContainsRegex("\\[worker/1\\] <cohort-launch-[0-9a-f]{32}>\n"));
  EXPECT_THAT(program.out(), AllOf(HasSubstr("[worker/0] went on\n"), HasSubstr("[worker/1] went on\n")));
  EXPECT_EQ(program.err(), "");
  LaunchedProgram unasked(Shell({"--workers=1", "--unhealthy_after=0"}, "echo \"<$COHORT_HEALTH>\""),
                          [] { setenv("COHORT_HEALTH", "of-another-launch", 1); });
  EXPECT_EQ(unasked.Wait(), 0);
  EXPECT_EQ(unasked.out(), "[worker/0] <>\n");
}

TEST_F(LaunchTest, WhereThereIsNoTerminalTasksAreNotToldToDrawBars) {
  LaunchedProgram program(Shell({"--workers=1"}, "printf '\r1/2\r2/2 %s\n' \"<$COHORT_PROGRESS>\""),
                          [] { unsetenv("COHORT_PROGRESS"); });
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_EQ(program.out(), "[worker/0] 2/2 <>\n");
}

TEST_F(LaunchTest, AReaderThatLeavesDoesNotEndTheTasks) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  close(fds[0]);
  LaunchedProgram program(
      Shell({"--workers=1"}, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; touch " + File("end")),
      [&] { dup2(fds[1], 1); });
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(File("end")));
  close(fds[1]);
}

// Runs the launch in a terminal of its own, as a user does.
class LaunchTerminalTest : public LaunchTest {
 protected:
  void Start(const std::vector<std::string>& flags, const std::string& script) {
    terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_EQ(grantpt(terminal_) | unlockpt(terminal_), 0);
    const std::string name = ptsname(terminal_);
    program_ = std::make_unique<LaunchedProgram>(Shell(flags, script), [&] {
      setenv("TERM", "xterm", 1);
      unsetenv("NO_COLOR");
      unsetenv("COHORT_PROGRESS");
      setsid();
      const int fd = open(name.c_str(), O_RDWR);  // it becomes the controlling terminal
      for (int standard = 0; standard <= 2; ++standard) dup2(fd, standard);
      close(fd);
    });
  }
  void TearDown() override {
    program_.reset();
    close(terminal_);
    LaunchTest::TearDown();
  }
  // Reads until `text` has appeared or time is over. Returns everything that was read so far.
  std::string ReadUntil(const std::string& text) {
    char buffer[1024];
    while (read_.find(text) == std::string::npos) {
      pollfd entry{terminal_, POLLIN, 0};
      if (poll(&entry, 1, kPatience * 1000) != 1) break;
      const ssize_t count = read(terminal_, buffer, sizeof(buffer));
      if (count <= 0) break;
      read_.append(buffer, static_cast<size_t>(count));
    }
    return read_;
  }
  void Type(char key) { ASSERT_EQ(write(terminal_, &key, 1), 1); }

  int terminal_ = -1;
  std::string read_;
  std::unique_ptr<LaunchedProgram> program_;
};

TEST_F(LaunchTerminalTest, TaskNamesAreColouredAndControlCEndsAll) {
  Start({"--workers=1", "--kill_after=600"}, "echo pid $$; exec sleep 600");
  EXPECT_THAT(ReadUntil("]\033[0m pid "), HasSubstr("\033[36m[worker/0]\033[0m pid "));
  ReadUntil("\n");
  const std::vector<WatchedProcess> task = Watch(NumbersAfter(read_, "pid "));
  ASSERT_EQ(task.size(), 1u);
  ASSERT_TRUE(task[0].running());
  Type('\003');
  EXPECT_EQ(program_->Wait(), 128 + SIGINT);
  EXPECT_FALSE(task[0].running());
  EXPECT_THAT(ReadUntil("SIGTERM"), HasSubstr("cohort launch: got SIGINT; sending SIGTERM to worker/0"));
}

TEST_F(LaunchTerminalTest, AProgressBarIsShownAsItGrows) {
  ASSERT_EQ(mkfifo(File("go").c_str(), 0600), 0);
  const int go = open(File("go").c_str(), O_RDWR | O_CLOEXEC);
  Start({"--workers=1", "--output_dir=" + folder_.path()},
        "printf 'begin\n\r1/2 %s' $COHORT_PROGRESS; read x < " + File("go") + "; printf '\r2/2 end\n'");
  // The bar is shown before its line has a newline.
  EXPECT_THAT(ReadUntil("1/2 bar\033[K"), HasSubstr("[worker/0]\033[0m begin\r\n\r\033[36m[worker/0]\033[0m 1/2 bar"));
  ASSERT_EQ(write(go, "\n", 1), 1);
  EXPECT_THAT(ReadUntil("2/2 end\r\n"), HasSubstr("\r\033[K\033[36m[worker/0]\033[0m 2/2 end\r\n"));
  EXPECT_EQ(program_->Wait(), 0);
  EXPECT_EQ(FileText(File("worker-0.log")), "begin\n2/2 end\n");
  close(go);
}

TEST_F(LaunchTerminalTest, AStoppedTerminalDoesNotStopSignals) {
  Start({"--workers=2", "--kill_after=0.2"}, "exec yes");
  ReadUntil("y\r\n");
  Type('\023');  // Ctrl-S
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace cohort::testing
