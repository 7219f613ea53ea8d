// Tests `cohort launch` from outside: how tasks end, how they are started again, and which command lines are valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(LaunchTest, TheFirstFailureIsNamed) {
  LaunchedProgram program(Shell({"--workers=3"}, "is worker 1 && { echo why >&2; exit 3; }; sleep 0"));
  EXPECT_EQ(program.Wait(), 3);
  EXPECT_THAT(program.err(),
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

// The launcher is stopped meanwhile, so it finds both ends at once. worker/1 has ended first.
TEST_F(LaunchTest, TheCauseIsNamedAndNotWhoNoticedIt) {
  LaunchedProgram program(
      Shell({"--workers=3"},
            "cd " + folder_.path() +
                "; has() { until [ -s $1 ]; do sleep 0.02; done; }; "
                "dead() { has $1; until [ \"$(cut -d' ' -f3 /proc/$(cat $1)/stat)\" = Z ]; do sleep 0.02; done; }; "
                "is worker 0 && { dead one; echo $$ > zero; exit 5; }; "
                "is worker 1 && { has all; kill -STOP $PPID; echo $$ > one; exit 4; }; "
                "echo started > all; dead zero; kill -CONT $PPID"));
  EXPECT_EQ(program.Wait(), 4);
  EXPECT_THAT(program.err(), ContainsRegex("worker/1 .*exited with code 4[^\n]*\n.*worker/0 .*exited with code 5"));
}

// worker/0 sees the end of worker/1, as a connected program would, and ends by itself.
TEST_F(LaunchTest, OthersMayEndByThemselves) {
  LaunchedProgram program(Shell({"--workers=2", "--grace=600"},
                                "trap 'echo got TERM' TERM; [ -p " + File("fifo") + " ] || mkfifo " + File("fifo") +
                                    " 2>&-; is worker 1 && { exec 3>" + File("fifo") + "; exit 4; }; cat " +
                                    File("fifo") + "; sleep 0.2; echo noticed; exit 5"));
  EXPECT_EQ(program.Wait(), 4);
  EXPECT_THAT(program.out(), HasSubstr("[worker/0] noticed\n"));
  EXPECT_THAT(program.out(), Not(HasSubstr("got TERM")));
  EXPECT_THAT(program.err(), HasSubstr("exited with code 5"));
}

TEST_F(LaunchTest, WhoIgnoresSigtermIsKilled) {
  LaunchedProgram program(
      Shell({"--workers=2", "--grace=0.1", "--kill_after=0.1"}, "is worker 1 && { until [ -e " + File("deaf") +
                                                                    " ]; do sleep 0.02; done; exit 6; }; "
                                                                    "trap '' TERM; touch " +
                                                                    File("deaf") + "; sleep 600; sleep 600"));
  EXPECT_EQ(program.Wait(), 6);
  EXPECT_THAT(program.err(), HasSubstr("worker/0 did not end within 0.1 s of SIGTERM; sending SIGKILL"));
}

TEST_F(LaunchTest, AStoppedTaskIsEndedToo) {
  LaunchedProgram program(
      Shell({"--workers=2", "--grace=0", "--kill_after=600"}, "is worker 1 && { until [ -e " + File("pid") +
                                                                  " ]; do sleep 0.02; done; exit 6; }; "
                                                                  "touch " +
                                                                  File("pid") + "; kill -STOP $$; sleep 600"));
  EXPECT_EQ(program.Wait(), 6);
}

TEST_F(LaunchTest, ServersThatStayAreEndedAndThatIsNoFailure) {
  LaunchedProgram program(
      Shell({"--ps=2", "--workers=2", "--grace=0.1"}, "is worker 0 || is worker 1 || exec sleep 600; exit 0"));
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_THAT(program.err(), HasSubstr("ps/0, ps/1 did not end within 0.1 s; sending SIGTERM"));
}

// Their variables would go there, and take the memory of the workers' cards.
TEST_F(LaunchTest, ParameterServersSeeNoGpusUnlessTheLaunchSaysSo) {
  for (const bool ps_gpus : {false, true}) {
    std::vector<std::string> flags = {"--ps=1", "--workers=1"};
    if (ps_gpus) flags.emplace_back("--ps_gpus");
    LaunchedProgram program(Shell(flags,
                                  "if is ps 0; then echo \"server [$CUDA_VISIBLE_DEVICES]\"; else echo \"worker "
                                  "[$CUDA_VISIBLE_DEVICES]\"; fi"),
                            [] { setenv("CUDA_VISIBLE_DEVICES", "3", 1); });
    EXPECT_EQ(program.Wait(), 0) << program.err();
    EXPECT_THAT(program.out(), AllOf(HasSubstr("worker [3]"), HasSubstr(ps_gpus ? "server [3]" : "server []")));
  }
}

TEST_F(LaunchTest, AServerThatFailsAfterTheWorkersIsAFailure) {
  LaunchedProgram program(Shell({"--ps=1", "--workers=1", "--grace=600"}, "is worker 0 && exit 0; sleep 0.3; exit 8"));
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
          "worker/1 \\(pid [0-9]+\\) exited with code 9 after [0-9.]+ s; starting it again in 0.1 s \\(1 of 2\\)"));
  EXPECT_THAT(
      program.err(),
      ContainsRegex("was killed by signal 6 \\(Aborted.*\\) after [0-9.]+ s; starting it again in 0.2 s \\(2 of 2\\)"));
  EXPECT_EQ(SortedLines(program.err()).size(), 2u) << program.err();
  const std::vector<std::string> lives = SortedLines(program.out());
  ASSERT_EQ(lives.size(), 3u);
  EXPECT_EQ(lives[0], lives[1]);
  EXPECT_EQ(lives[1], lives[2]);
}

TEST_F(LaunchTest, RestartsAreCountedForEachTask) {
  LaunchedProgram program(Shell({"--workers=2", "--max-restarts=2"}, "exit 5"));
  EXPECT_EQ(program.Wait(), 5);
  EXPECT_GE(NumbersAfter(program.err(), "starting it again in ").size(), 2u);
  EXPECT_LE(NumbersAfter(program.err(), "starting it again in ").size(), 8u);
  EXPECT_THAT(program.err(), HasSubstr("(2 of 2)"));
}

TEST_F(LaunchTest, ARestartedTaskListensOnItsPortAgainAtOnce) {
  LaunchedProgram program(Launch({"--ps=1", "--workers=1", "--restart=1"}, {LAUNCHED_TASK, "reborn", File("life")}));
  EXPECT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.err(), HasSubstr("exited with code 7"));
}

TEST_F(LaunchTest, FiftyLaunchesAtOnceCollideOnNoPort) {
  std::vector<std::unique_ptr<LaunchedProgram>> programs;
  for (int i = 0; i < 50; ++i) {
    programs.push_back(std::make_unique<LaunchedProgram>(Launch({"--ps=2", "--workers=2"}, {LAUNCHED_TASK, "ring"})));
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
           {"no_such_program_anywhere", 127, "cannot run no_such_program_anywhere: there is no such program in PATH"},
           {File("nothing"), 127, "cannot run " + File("nothing") + ": No such file"},
           {folder_.path(), 126, "cannot run " + folder_.path() + ": Is a directory"},
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

TEST_F(LaunchTest, TheNearestCommandAndFlagAreNamed) {
  LaunchedProgram command({COHORT_PROGRAM, "lunch"});
  EXPECT_EQ(command.Wait(), 2);
  EXPECT_THAT(command.err(), HasSubstr("there is no command 'lunch'; did you mean launch?"));
  LaunchedProgram flag({COHORT_PROGRAM, "launch", "--wrkers=2", "--", "true"});
  EXPECT_EQ(flag.Wait(), 2);
  EXPECT_THAT(flag.err(), HasSubstr("--wrkers=2; did you mean --workers?"));
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

}  // namespace
}  // namespace cohort::testing
