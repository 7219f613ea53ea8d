// `cohort launch` as its users see it: real processes, signals, exit codes, output.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>

#include "tests/cluster/launched_program.h"

namespace cohort::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The shell's condition that it runs as task "worker", 1.
constexpr char kIsTask[] =
    "is() { case $TF_CONFIG in *'\"task\":{\"type\":\"'$1'\",\"index\":'$2'}'*) true;; *) false;; esac; }; ";

std::vector<std::string> Launch(std::vector<std::string> flags, const std::vector<std::string>& program) {
  flags.insert(flags.begin(), {COHORT_PROGRAM, "launch"});
  flags.push_back("--");
  flags.insert(flags.end(), program.begin(), program.end());
  return flags;
}

std::vector<std::string> Shell(std::vector<std::string> flags, const std::string& script) {
  return Launch(std::move(flags), {"/bin/sh", "-c", kIsTask + script});
}

std::vector<std::string> SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<WatchedProcess> Watch(const std::vector<pid_t>& pids) {
  std::vector<WatchedProcess> watched;
  for (const pid_t pid : pids) watched.emplace_back(pid);
  return watched;
}

std::string FileText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class LaunchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "launch_test-" + std::to_string(getpid()) + "-" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string File(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(LaunchTest, OutputIsLabelledAndTheEndIsGood) {
  LaunchedProgram program(
      Shell({"--workers=2", "--ps=1", "--chief", "--evaluator"}, "echo out; printf end; printf tail >&2"));
  EXPECT_EQ(program.Wait(), 0);
  std::vector<std::string> out, err;
  for (const char* task : {"chief/0", "evaluator/0", "ps/0", "worker/0", "worker/1"}) {
    out.push_back("[" + std::string(task) + "] end");
    out.push_back("[" + std::string(task) + "] out");
    err.push_back("[" + std::string(task) + "] tail");
  }
  EXPECT_EQ(SortedLines(program.out()), out);
  EXPECT_EQ(SortedLines(program.err()), err);
}

TEST_F(LaunchTest, TheFirstFailureIsNamed) {
  LaunchedProgram program(Shell({"--workers=3"}, "is worker 1 && { echo why >&2; exit 3; }; sleep 0"));
  EXPECT_EQ(program.Wait(), 3);
  EXPECT_THAT(
      program.err(),
      ContainsRegex("cohort launch: worker/1 \\(pid [0-9]+\\) exited with code 3 after [0-9]+\\.[0-9] s"));
  EXPECT_LT(program.err().find("[worker/1] why"), program.err().find("cohort launch: worker/1"));
}

TEST_F(LaunchTest, ADeathBySignalIsNamed) {
  LaunchedProgram program(
      Shell({"--workers=2", "--grace=0", "--kill-after=60"}, "is worker 1 && kill -9 $$; exec sleep 600"));
  EXPECT_EQ(program.Wait(), 128 + SIGKILL);
  EXPECT_THAT(program.err(),
              ContainsRegex("worker/1 \\(pid [0-9]+\\) was killed by signal 9 \\(Killed\\) after [0-9.]+ s"));
  EXPECT_THAT(program.err(), HasSubstr("worker/0 did not end within 0.0 s; sending SIGTERM"));
}

// worker/0 sees the end of worker/1, as a program that is connected to it would, and ends by itself.
TEST_F(LaunchTest, OthersMayEndByThemselves) {
  LaunchedProgram program(Shell({"--workers=2", "--grace=600"},
                                "trap 'echo got TERM' TERM; [ -p " + File("fifo") + " ] || mkfifo " +
                                    File("fifo") + " 2>&-; is worker 1 && { exec 3>" + File("fifo") +
                                    "; exit 4; }; cat " + File("fifo") + "; echo noticed; exit 5"));
  EXPECT_EQ(program.Wait(), 4);
  EXPECT_THAT(program.out(), HasSubstr("[worker/0] noticed\n"));
  EXPECT_THAT(program.out(), Not(HasSubstr("got TERM")));
  EXPECT_THAT(program.err(), HasSubstr("exited with code 5"));
}

TEST_F(LaunchTest, WhoIgnoresSigtermIsKilled) {
  LaunchedProgram program(Shell({"--workers=2", "--grace=0.1", "--kill_after=0.1"},
                                "is worker 1 && { until [ -e " + File("deaf") +
                                    " ]; do sleep 0.02; done; exit 6; }; "
                                    "trap '' TERM; touch " +
                                    File("deaf") + "; sleep 600; sleep 600"));
  EXPECT_EQ(program.Wait(), 6);
  EXPECT_THAT(program.err(), HasSubstr("worker/0 did not end within 0.1 s of SIGTERM; sending SIGKILL"));
}

TEST_F(LaunchTest, AStoppedTaskIsEndedToo) {
  LaunchedProgram program(Shell({"--workers=2", "--grace=0", "--kill_after=600"},
                                "is worker 1 && { until [ -e " + File("pid") +
                                    " ]; do sleep 0.02; done; exit 6; }; "
                                    "touch " +
                                    File("pid") + "; kill -STOP $$; sleep 600"));
  EXPECT_EQ(program.Wait(), 6);
}

TEST_F(LaunchTest, ServersThatStayAreEndedAndThatIsNoFailure) {
  LaunchedProgram program(Shell({"--ps=2", "--workers=2", "--grace=0.1"},
                                "is worker 0 || is worker 1 || exec sleep 600; exit 0"));
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_THAT(program.err(), HasSubstr("ps/0, ps/1 did not end within 0.1 s; sending SIGTERM"));
}

TEST_F(LaunchTest, AServerThatFailsAfterTheWorkersIsAFailure) {
  LaunchedProgram program(
      Shell({"--ps=1", "--workers=1", "--grace=600"}, "is worker 0 && exit 0; sleep 0.3; exit 8"));
  EXPECT_EQ(program.Wait(), 8);
  EXPECT_THAT(program.err(), HasSubstr("ps/0"));
}

TEST_F(LaunchTest, AFailedTaskIsStartedAgainAsItself) {
  LaunchedProgram program(Shell({"--ps=1", "--workers=2", "--restart=2"},
                                "is worker 0 && { until [ -e " + File("2") +
                                    " ]; do sleep 0.02; done; exit 0; }; "
                                    "is worker 1 || exit 0; echo $TF_CONFIG $COHORT_TOKEN; "
                                    "[ -e " +
                                    File("1") + " ] || { touch " + File("1") +
                                    "; exit 9; }; "
                                    "[ -e " +
                                    File("2") + " ] || { touch " + File("2") + "; kill -6 $$; }; exit 0"));
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_THAT(
      program.err(),
      ContainsRegex(
          "worker/1 \\(pid [0-9]+\\) exited with code 9 after [0-9.]+ s; starting it again \\(1 of 2\\)"));
  EXPECT_THAT(program.err(),
              ContainsRegex(
                  "was killed by signal 6 \\(Aborted.*\\) after [0-9.]+ s; starting it again \\(2 of 2\\)"));
  EXPECT_EQ(SortedLines(program.err()).size(), 2u) << program.err();
  const std::vector<std::string> lives = SortedLines(program.out());
  ASSERT_EQ(lives.size(), 3u);
  EXPECT_EQ(lives[0], lives[1]);
  EXPECT_EQ(lives[1], lives[2]);
}

TEST_F(LaunchTest, RestartsAreCountedForEachTask) {
  LaunchedProgram program(Shell({"--workers=2", "--max-restarts=2"}, "exit 5"));
  EXPECT_EQ(program.Wait(), 5);
  EXPECT_GE(NumbersAfter(program.err(), "starting it again (").size(), 2u);
  EXPECT_LE(NumbersAfter(program.err(), "starting it again (").size(), 4u);
  EXPECT_THAT(program.err(), HasSubstr("(2 of 2)"));
}

TEST_F(LaunchTest, ARestartedTaskListensOnItsPortAgainAtOnce) {
  LaunchedProgram program(
      Launch({"--ps=1", "--workers=1", "--restart=1"}, {LAUNCHED_TASK, "reborn", File("life")}));
  EXPECT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.err(), HasSubstr("exited with code 7"));
}

TEST_F(LaunchTest, FiftyLaunchesAtOnceCollideOnNoPort) {
  std::vector<std::unique_ptr<LaunchedProgram>> programs;
  for (int i = 0; i < 50; ++i) {
    programs.push_back(
        std::make_unique<LaunchedProgram>(Launch({"--ps=2", "--workers=2"}, {LAUNCHED_TASK, "ring"})));
  }
  for (auto& program : programs) EXPECT_EQ(program->Wait(), 0) << program->err();
}

TEST_F(LaunchTest, AProgramThatCannotRunIsNamedAndNothingStarts) {
  std::ofstream(File("text")) << "no program\n";
  std::ofstream(File("forbidden")) << "#!/bin/sh\n";
  std::ofstream(File("script")) << "#!/nowhere/interpreter -x\n";
  for (const char* name : {"text", "script"}) {
    std::filesystem::permissions(File(name), std::filesystem::perms::owner_all);
  }
  for (const auto& [path, code, message] : std::vector<std::tuple<std::string, int, std::string>>{
           {"no_such_program_anywhere", 127,
            "cannot run no_such_program_anywhere: there is no such program in PATH"},
           {File("nothing"), 127, "cannot run " + File("nothing") + ": No such file"},
           {folder_, 126, "cannot run " + folder_ + ": Is a directory"},
           {File("forbidden"), 126, "cannot run " + File("forbidden") + ": Permission denied"},
           {File("text"), 126, "cannot run " + File("text") + ": it is neither a program"},
           {File("script"), 127, "cannot run " + File("script") + ": there is no /nowhere/interpreter"},
           {"", 127, "the name is empty"}}) {
    LaunchedProgram program(Launch({"--workers=3"}, {path}));
    EXPECT_EQ(program.Wait(), code) << path;
    EXPECT_THAT(program.err(), HasSubstr("cohort launch: ")) << path;
    EXPECT_THAT(program.err(), HasSubstr(message));
    EXPECT_EQ(SortedLines(program.err()).size(), 1u) << program.err();
    EXPECT_THAT(program.out(), IsEmpty());
  }
}

TEST_F(LaunchTest, WrongCommandLinesEndWithTwo) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"lunch"},
                                             {"launch", "--wrkers=2", "--", "true"},
                                             {"launch", "--workers=-1", "--", "true"},
                                             {"launch", "--workers=1"},
                                             {"launch", "--", "true"},
                                             {"launch", "--workers=1", "true"},
                                             {"launch", "--chief=2", "--", "true"},
                                             {"launch", "--workers=600", "--ps=600", "--", "true"},
                                             {"version", "--x"}}) {
    std::vector<std::string> command = words;
    command.insert(command.begin(), COHORT_PROGRAM);
    LaunchedProgram program(command);
    EXPECT_EQ(program.Wait(), 2);
    EXPECT_THAT(program.out(), IsEmpty());
    EXPECT_THAT(program.err(), HasSubstr("cohort"));
  }
}

TEST_F(LaunchTest, HelpAndVersion) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"launch", "--help"},
                                             {"launch", "--workers=1", "-h", "--", "true"},
                                             {"version"},
                                             {"version", "--help"}}) {
    std::vector<std::string> command = words;
    command.insert(command.begin(), COHORT_PROGRAM);
    LaunchedProgram program(command);
    EXPECT_EQ(program.Wait(), 0);
    EXPECT_THAT(program.out(), HasSubstr("cohort"));
    EXPECT_THAT(program.err(), IsEmpty());
  }
}

TEST_F(LaunchTest, ADryRunPrintsWhatEveryTaskWouldGet) {
  LaunchedProgram program({COHORT_PROGRAM, "launch", "--ps=1", "--workers=2", "--dry-run"});
  EXPECT_EQ(program.Wait(), 0);
  const std::regex line(
      "(ps/0|worker/[01]) TF_CONFIG=\\{\"cluster\":\\{\"ps\":\\[\"127.0.0.1:[0-9]+\"\\],\"worker\":"
      "\\[\"127.0.0.1:[0-9]+\",\"127.0.0.1:[0-9]+\"\\]\\},\"task\":\\{\"type\":\"(ps|worker)\",\"index\":[01]"
      "\\}\\}");
  const std::vector<std::string> lines = SortedLines(program.out());
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& text : lines) EXPECT_TRUE(std::regex_match(text, line)) << text;
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
      Shell({"--workers=1", "--output-dir=" + folder_}, "echo out; echo err >&2; read x; exit 0"),
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
  EXPECT_EQ(out.find("ab"), std::string::npos);  // no line has another task's text in it
  EXPECT_EQ(out.find("ba"), std::string::npos);
}

TEST_F(LaunchTest, TheEnvironmentOfATask) {
  LaunchedProgram own(Shell({"--workers=1", "--threads_per_task=3"}, "echo $COHORT_TOKEN $OMP_NUM_THREADS"),
                      [] {
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

TEST_F(LaunchTest, AReaderThatLeavesDoesNotEndTheTasks) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  close(fds[0]);
  LaunchedProgram program(
      Shell({"--workers=1"},
            "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; touch " + File("end")),
      [&] { dup2(fds[1], 1); });
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(File("end")));
  close(fds[1]);
}

// What a task starts and leaves behind: in its own process group, in a session of its own, holding its output
// or not.
constexpr char kStartHelpers[] =
    "sleep 600 & echo helper $!; setsid sleep 600 & sleep 600 >/dev/null 2>&1 & echo helper $!; "
    "setsid /bin/sh -c 'echo helper $$; exec sleep 600' & echo launcher $PPID; echo helper $$; ";

TEST_F(LaunchTest, WhatTasksLeaveBehindIsEnded) {
  LaunchedProgram program(Shell({"--workers=2", "--kill-after=600"},
                                std::string(kStartHelpers) + "read x < " + File("go") + "; exit 0"));
  ASSERT_TRUE(program.WaitForText("No such file", 2)) << program.err();  // both got as far as `read`
  EXPECT_EQ(program.Wait(), 0);
  for (const auto& helper : Watch(NumbersAfter(program.out(), "helper "))) EXPECT_FALSE(helper.running());
  EXPECT_THAT(program.err(), HasSubstr("cohort launch: tasks have left "));
}

class LaunchKilledTest : public LaunchTest {
 protected:
  // Two workers with three helpers each; all of them, and the launcher's two processes, are watched.
  void Start(const std::vector<std::string>& more_flags = {}, const std::string& before = "",
             const std::function<void()>& in_child = nullptr) {
    std::vector<std::string> flags{"--workers=2"};
    flags.insert(flags.end(), more_flags.begin(), more_flags.end());
    program_ = std::make_unique<LaunchedProgram>(
        Shell(flags, before + kStartHelpers + "while true; do sleep 600; done"), in_child);
    ASSERT_TRUE(program_->WaitForText("helper ", 8)) << program_->err();
    ASSERT_TRUE(program_->WaitForText("launcher ", 2));
    std::vector<pid_t> pids = NumbersAfter(program_->out(), "helper ");
    launcher_ = NumbersAfter(program_->out(), "launcher ").at(0);
    pids.push_back(launcher_);
    watched_ = Watch(pids);
    ASSERT_EQ(watched_.size(), 9u);
    for (const auto& process : watched_) ASSERT_TRUE(process.running());
  }
  void ExpectAllEnd() {
    for (const auto& process : watched_) EXPECT_TRUE(process.WaitForEnd());
  }

  std::unique_ptr<LaunchedProgram> program_;
  pid_t launcher_ = 0;  // the process that started the tasks, a child of program_
  std::vector<WatchedProcess> watched_;
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
  for (const auto& process : watched_) EXPECT_FALSE(process.running());
  EXPECT_THAT(program_->err(), HasSubstr("was killed by signal 9"));
}

TEST_F(LaunchKilledTest, KillingBothEndsTheTasks) {
  Start();
  kill(launcher_, SIGSTOP);  // so that it cannot do anything between the two
  program_->Signal(SIGKILL);
  kill(launcher_, SIGKILL);
  EXPECT_EQ(program_->Wait(), 128 + SIGKILL);
  // Nobody is left who knows the helpers; the tasks themselves still die with their parent.
  const std::vector<pid_t> pids = NumbersAfter(program_->out(), "helper ");
  EXPECT_TRUE(watched_.back().WaitForEnd());
  for (const pid_t pid : pids) kill(pid, SIGKILL);
  ExpectAllEnd();
}

TEST_F(LaunchKilledTest, SignalsEndAll) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Start({"--kill_after=600"});
    program_->Signal(signal);
    EXPECT_EQ(program_->Wait(), 128 + signal);
    for (const auto& process : watched_) EXPECT_FALSE(process.running());
    EXPECT_THAT(program_->err(), HasSubstr(std::string("got SIG") + sigabbrev_np(signal) +
                                           "; sending SIGTERM to worker/0, worker/1"));
  }
}

TEST_F(LaunchKilledTest, ASecondSignalKills) {
  Start({"--kill_after=600"}, "trap '' TERM; ");
  program_->Signal(SIGTERM);
  ASSERT_TRUE(program_->WaitForText("got SIGTERM; sending SIGTERM"));
  program_->Signal(SIGINT);
  EXPECT_EQ(program_->Wait(), 128 + SIGTERM);
  EXPECT_THAT(program_->err(), HasSubstr("got SIGINT; killing what is left"));
  for (const auto& process : watched_) EXPECT_FALSE(process.running());
}

TEST_F(LaunchKilledTest, WhoIgnoresSigtermIsKilledAfterASignal) {
  Start({"--kill_after=0.1"}, "trap '' TERM; ");
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 128 + SIGTERM);
  EXPECT_THAT(program_->err(), HasSubstr("sending SIGKILL"));
  for (const auto& process : watched_) EXPECT_FALSE(process.running());
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
