// Something hangs in a cluster of real processes. Each case starts the processes of hang_task.cc with a limit without
// progress of a second or two, and reads what worker 0 prints. What is only slow is left alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <regex>

#include "cohort/cluster/testing/http_client.h"
#include "cohort/core/str_cat.h"
#include "tests/chaos/process_cluster.h"
#include "tests/chaos/tcp_proxy.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPs = "/job:ps/replica:0/task:0";
const std::string kWorker1 = "/job:worker/replica:0/task:1";

class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() : cluster_({{"ps", 1}, {"worker", 2}}, {HANG_TASK}) { UseTestToken(); }

  void Start(const std::string& limit, const Arguments& flags, const Arguments& more_for_ps = {}) {
    const ProcessCluster::Surroundings surroundings{{"COHORT_PROGRESS_LIMIT=" + limit}, nullptr};
    Arguments of_ps = flags;
    of_ps.insert(of_ps.end(), more_for_ps.begin(), more_for_ps.end());
    cluster_.Start("ps", 0, of_ps, surroundings);
    for (const int worker : {1, 0}) cluster_.Start("worker", worker, flags, surroundings);
  }
  // Returns the error of the step of `worker` that has failed.
  std::string Failure(int worker = 0) {
    EXPECT_TRUE(cluster_.WaitForLines("worker", worker, "failed", 1)) << cluster_.Describe();
    return cluster_.LastLine("worker", worker, "failed");
  }
  void ExpectEnd() {
    EXPECT_TRUE(cluster_.WaitForLines("worker", 0, "end", 1)) << cluster_.Describe();
    EXPECT_EQ(cluster_.CountLines("worker", 0, "failed"), 0) << cluster_.Describe();
  }
  // Sends SIGUSR1 to the task and returns its output when it has printed its state.
  std::string Dump(const std::string& job, int index) {
    LaunchedProgram& task = cluster_.task(job, index);
    task.Signal(SIGUSR1);
    EXPECT_TRUE(task.WaitForText("==== end of what process ")) << cluster_.Describe();
    return task.err();
  }

  ProcessCluster cluster_;
};

TEST_F(ProgressTest, AKernelHangsOnAParameterServer) {
  Start("1", {"--what=hang", "--on=/job:ps/task:0"});
  EXPECT_THAT(Failure(), AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("has made no progress for "),
                               HasSubstr(kPs + " runs node 'stuck' (TestHang)"), HasSubstr("HangInUserCode")));
}

TEST_F(ProgressTest, AKernelHangsOnAWorker) {
  Start("1", {"--what=hang", "--on=/job:worker/task:1"});
  EXPECT_THAT(Failure(), AllOf(HasSubstr("DeadlineExceeded"), HasSubstr(kWorker1 + " runs node 'stuck' (TestHang)"),
                               HasSubstr("HangInUserCode")));
}

TEST_F(ProgressTest, AValueNeverComes) {
  Start("1", {"--what=forget", "--on=/job:ps/task:0"});
  EXPECT_THAT(Failure(),
              AllOf(HasSubstr("DeadlineExceeded"), HasSubstr(kPs + " works on node 'forgotten' (TestForget)")));
}

// The limit is longer than the silence of a frozen process that the test allows, so the task is connected and silent.
TEST_F(ProgressTest, ATaskThatDoesNotAnswerIsNamed) {
  Start("2", {"--what=hang", "--on=/job:ps/task:0"});
  ASSERT_TRUE(cluster_.task("ps", 0).WaitForText("serving")) << cluster_.Describe();
  // The dump shows that the kernel runs, and the process is frozen after that.
  while (Dump("ps", 0).find("'stuck'") == std::string::npos) {
    ASSERT_EQ(cluster_.CountLines("worker", 0, "failed"), 0) << cluster_.Describe();
  }
  cluster_.Freeze("ps", 0);
  EXPECT_THAT(Failure(), AllOf(HasSubstr("DeadlineExceeded"), HasSubstr(kPs + " does not answer")));
  cluster_.Thaw("ps", 0);
}

TEST_F(ProgressTest, AMemberOfACollectiveHangs) {
  Start("1", {"--what=reduce", "--absent=1"});
  EXPECT_THAT(Failure(), AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("'gradients/dense' (instance 1, round 1)"),
                               HasSubstr("has made no progress for 1 s"), HasSubstr(kWorker1 + " runs no step"),
                               HasSubstr("HangInUserCode")));
}

// Worker 0 has failed and is started again. Worker 1 still runs, and never comes to the new group.
TEST_F(ProgressTest, AMemberThatHangsIsNamedToOneThatJoinsAgain) {
  Start("1", {"--what=reduce", "--absent=1"});
  EXPECT_THAT(Failure(), HasSubstr("has made no progress for 1 s"));
  cluster_.Start("worker", 0, {"--what=reduce"}, {{"COHORT_PROGRESS_LIMIT=1"}, nullptr});
  EXPECT_THAT(
      Failure(),
      AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("generation 1 cannot be formed: rank 1 (" + kWorker1),
            HasSubstr("has called no session and no collective for more than 1 s"), HasSubstr("HangInUserCode")));
  EXPECT_THAT(cluster_.task("worker", 1).err(), HasSubstr("a thread of this process hangs"));
}

// A program may do what it likes before it first comes to a group.
TEST_F(ProgressTest, AMemberThatComesLateIsWaitedFor) {
  Start("0.5", {"--what=reduce", "--late=1", "--after_ms=3000"});
  ExpectEnd();
}

// The program of one worker hangs between two steps. The other one fails, is started again, and waits for it. Nobody is
// there to end it but the launcher.
TEST_F(ProgressTest, TheLauncherReplacesATaskWhoseProgramHangsBetweenTwoSteps) {
  for (const int absent : {1, 0}) {
    setenv("COHORT_PROGRESS_LIMIT", "1", 1);
    LaunchedProgram launcher({COHORT_PROGRAM, "launch", "--workers=2", "--restart=1", "--unhealthy_after=2", "--",
                              HANG_TASK, "--what=reduce", "--once=1", StrCat("--absent=", absent)});
    unsetenv("COHORT_PROGRESS_LIMIT");
    EXPECT_EQ(launcher.Wait(), 0) << launcher.out() << launcher.err();
    const std::string said = launcher.out() + launcher.err();
    EXPECT_THAT(said, AllOf(HasSubstr(StrCat("waits for rank ", absent, " (/job:worker/replica:0/task:", absent)),
                            HasSubstr("has made no progress for 1 s"), HasSubstr("a thread of this process hangs"),
                            HasSubstr("HangInUserCode"), HasSubstr("has not answered the launcher for "),
                            HasSubstr("[worker/0] end"), HasSubstr("[worker/1] end")));
  }
}

TEST_F(ProgressTest, ATaskPrintsItsStateOnASignal) {
  Start("60", {"--what=hang", "--on=/job:ps/task:0"});
  // A task that is asked before it has installed its handler ends by the signal.
  for (const auto& [job, index] : {std::pair{"ps", 0}, std::pair{"worker", 0}}) {
    ASSERT_TRUE(cluster_.task(job, index).WaitForText("serving")) << cluster_.Describe();
  }
  std::string dump;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  while (dump.find("runs node 'stuck'") == std::string::npos && std::chrono::steady_clock::now() < deadline) {
    dump = Dump("ps", 0);
  }
  EXPECT_THAT(dump, AllOf(HasSubstr("state of " + kPs), HasSubstr("runs node 'stuck' (TestHang)"),
                          HasSubstr("HangInUserCode"), HasSubstr(" of /job:worker/replica:0/task:0: 1 graphs"),
                          HasSubstr("MiB resident"), HasSubstr("'cohort-net'")));
  EXPECT_THAT(Dump("worker", 0), HasSubstr("state of /job:worker/replica:0/task:0"));
  LaunchedProgram asks({COHORT_PROGRAM, "status", cluster_.address("worker", 0), "--dump=ps/0", "--timeout=30"});
  EXPECT_EQ(asks.Wait(), 0) << asks.err();
  EXPECT_THAT(asks.out(), AllOf(HasSubstr("state of " + kPs), HasSubstr("runs node 'stuck' (TestHang)"),
                                HasSubstr("HangInUserCode")));
}

// The kernel runs on the thread that called Run.
TEST_F(ProgressTest, ATaskThatHangsIsUnhealthy) {
  LaunchedProgram& task = cluster_.Start("worker", 0, {"--what=hang", "--on=/job:worker/task:0"},
                                         {{"COHORT_PROGRESS_LIMIT=1", "COHORT_METRICS_PORT=0"}, nullptr});
  ASSERT_TRUE(task.WaitForText("the thread that called Run does not return")) << cluster_.Describe();
  const std::string said = task.out() + task.err();
  std::smatch metrics;
  ASSERT_TRUE(std::regex_search(said, metrics, std::regex("http://127.0.0.1:([0-9]+)/metrics"))) << said;
  HttpAnswer health = Fetch(std::stoi(metrics[1]), "/healthz");
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
       health.code == 200 && std::chrono::steady_clock::now() < end;) {
    health = Fetch(std::stoi(metrics[1]), "/healthz");  // the log comes a moment before
  }
  EXPECT_EQ(health.code, 503);
  EXPECT_THAT(health.body, HasSubstr("worker 0 hangs: a kernel of a step that was given up does not return"));
}

// The thread that called Run hangs, so no error can be thrown in the task. The launcher ends it.
TEST_F(ProgressTest, TheLauncherEndsATaskThatCannotReturnFromAKernel) {
  setenv("COHORT_PROGRESS_LIMIT", "1", 1);
  LaunchedProgram launcher({COHORT_PROGRAM, "launch", "--workers=1", "--unhealthy_after=2", "--", HANG_TASK,
                            "--what=hang", "--on=/job:worker/task:0"});
  unsetenv("COHORT_PROGRESS_LIMIT");
  EXPECT_NE(launcher.Wait(), 0);
  const std::string said = launcher.out() + launcher.err();
  EXPECT_THAT(said, AllOf(HasSubstr("the thread that called Run does not return from a kernel"),
                          HasSubstr("node 'stuck' (TestHang)"), HasSubstr("HangInUserCode"),
                          HasSubstr("has not answered the launcher for ")));
}

TEST_F(ProgressTest, AWaitInAQueueIsNotLate) {
  Start("0.5", {"--what=queue", "--on=/job:ps/task:0", "--after_ms=3000"});
  ExpectEnd();
}

TEST_F(ProgressTest, ManyShortKernelsAreProgress) {
  Start("1", {"--what=short", "--on=/job:ps/task:0"});
  ExpectEnd();
}

// 16 MB at 4 MB/s take four limits. No kernel ends meanwhile.
TEST_F(ProgressTest, ASlowTransferIsProgress) {
  const std::string address = cluster_.address("ps", 0);
  TcpProxy proxy(std::stoi(address.substr(address.rfind(':') + 1)), 4'000'000);
  cluster_.Advertise("ps", 0, proxy.address());
  Start("1", {"--what=send", "--on=/job:ps/task:0", "--elements=4000000"}, {"--bind=" + address});
  ExpectEnd();
}

}  // namespace
}  // namespace cohort::testing
