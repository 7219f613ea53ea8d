#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/cluster/status/cluster_report.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Answer = TaskReport::Answer;

// A cluster that trains: a ps with the global step, and workers.
ClusterReport Healthy(int workers = 2) {
  ClusterReport report;
  report.time_limit = milliseconds(5000);
  const auto add = [&](const std::string& job, int index) {
    TaskReport task{.job = job, .index = index, .address = job + ":1", .answer = Answer::kStatus};
    task.status.task = "/job:" + job + "/replica:0/task:" + std::to_string(index);
    task.status.activity = TaskActivity::kRunning;
    task.status.steps_per_second = 4000;
    report.tasks.push_back(task);
  };
  add("ps", 0);
  for (int i = 0; i < workers; ++i) add("worker", i);
  report.tasks[0].status.global_step = 12300;
  report.tasks[0].status.global_steps_per_second = 8100;
  return report;
}

TaskReport& Missing(ClusterReport& report, size_t task, Answer answer) {
  report.tasks[task].answer = answer;
  report.tasks[task].status = TaskStatus();
  return report.tasks[task];
}

StepStatus Waiting(int64_t step, milliseconds time, const WaitStatus& wait) {
  return {.session = 1, .step = step, .age = time, .without_progress = time, .waits = {wait}};
}

TEST(VerdictTest, AHealthyCluster) {
  const Verdict verdict = JudgeCluster(Healthy(4));
  EXPECT_TRUE(verdict.well);
  EXPECT_EQ(verdict.text, "all 5 tasks are well, step 12 300, 8 100 steps/s");
  EXPECT_THAT(verdict.findings, IsEmpty());
}

TEST(VerdictTest, WithoutAGlobalStepTheFastestTaskCounts) {
  ClusterReport report = Healthy();
  report.tasks[0].status.global_step.reset();
  report.tasks[2].status.steps_per_second = 5000;
  EXPECT_EQ(JudgeCluster(report).text, "all 3 tasks are well, 5 000 steps/s");
}

TEST(VerdictTest, IdleAndWaitingClustersAreWell) {
  ClusterReport report = Healthy();
  for (TaskReport& task : report.tasks) task.status.activity = TaskActivity::kIdle;
  EXPECT_EQ(JudgeCluster(report).text, "all 3 tasks are well; no step runs");
  report.tasks[0].status.activity = TaskActivity::kWaitingForChief;
  const Verdict verdict = JudgeCluster(report);
  EXPECT_TRUE(verdict.well);
  EXPECT_EQ(verdict.text, "all 3 tasks are well; 1 of 3 tasks waits for the chief");
}

TEST(VerdictTest, ATaskThatNobodyHears) {
  ClusterReport report = Healthy();
  Missing(report, 2, Answer::kSilent);
  report.tasks[0].status.peers = {{"/job:worker/replica:0/task:1", "w:1", false, milliseconds(12'000)}};
  report.tasks[1].status.peers = {{"/job:worker/replica:0/task:1", "w:1", true, milliseconds(13'000)}};
  const Verdict verdict = JudgeCluster(report);
  EXPECT_FALSE(verdict.well);
  EXPECT_EQ(verdict.text, "worker 1 has not answered for 12.0 s");
}

TEST(VerdictTest, ASilentTaskThatNobodyKnows) {
  ClusterReport report = Healthy();
  Missing(report, 2, Answer::kSilent);
  EXPECT_EQ(JudgeCluster(report).text, "worker 1 has not answered for 5.0 s");
  report.tasks[0].status.peers = {{"/job:worker/replica:0/task:1", "w:1", true, milliseconds(300)}};
  EXPECT_EQ(JudgeCluster(report).text, "worker 1 has not answered for 5.0 s, but others have heard of it 0.3 s ago");
}

TEST(VerdictTest, ATaskThatIsGone) {
  ClusterReport report = Healthy();
  Missing(report, 0, Answer::kGone).address = "127.0.0.1:2222";
  report.tasks[1].status.peers = {{"/job:ps/replica:0/task:0", "127.0.0.1:2222", false, milliseconds(2500)}};
  const Verdict verdict = JudgeCluster(report);
  EXPECT_FALSE(verdict.well);
  EXPECT_EQ(verdict.text,
            "ps 0 is gone: no process answers at 127.0.0.1:2222; the others have last heard of it 2.5 s ago");
}

TEST(VerdictTest, TasksMayEndWhenTrainingIsDone) {
  ClusterReport report = Healthy();
  report.tasks[0].status.activity = TaskActivity::kStopping;
  Missing(report, 1, Answer::kGone);
  Missing(report, 2, Answer::kGone);
  Verdict verdict = JudgeCluster(report);
  EXPECT_TRUE(verdict.well);
  EXPECT_EQ(verdict.text, "training is done; 1 of 3 tasks still run");
  report.tasks[2].answer = Answer::kSilent;  // it has not ended: it hangs
  verdict = JudgeCluster(report);
  EXPECT_FALSE(verdict.well);
  EXPECT_EQ(verdict.text, "worker 1 has not answered for 5.0 s");
}

TEST(VerdictTest, NobodyAnswers) {
  ClusterReport report = Healthy();
  for (size_t i = 0; i < 3; ++i) Missing(report, i, Answer::kGone);
  EXPECT_THAT(JudgeCluster(report).text, StartsWith("none of the 3 tasks has answered: ps 0 is gone"));
}

TEST(VerdictTest, ATaskThatRefusesTheClient) {
  ClusterReport report = Healthy();
  Missing(report, 1, Answer::kRefused).why_not = "another token";
  EXPECT_EQ(JudgeCluster(report).text, "worker 0 has refused the question: another token");
}

TEST(VerdictTest, AStepThatWaitsInACollective) {
  ClusterReport report = Healthy();
  report.tasks[2].status.running = {
      Waiting(40, milliseconds(12'000), {false, "AllReduce 'gradients/3'", "/job:worker/replica:0/task:0"})};
  const Verdict verdict = JudgeCluster(report);
  EXPECT_FALSE(verdict.well);
  EXPECT_EQ(verdict.text, "worker 1 waits for 12.0 s in AllReduce 'gradients/3' for worker 0");
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].task, 2u);
  EXPECT_TRUE(JudgeCluster(report, {.waiting = milliseconds(12'001)}).well);
}

// The ps waits for worker 1, which waits for worker 0: the last link explains the others.
TEST(VerdictTest, TheEndOfAChainOfWaitsComesFirst) {
  ClusterReport report = Healthy();
  report.tasks[0].status.running = {
      Waiting(40, milliseconds(13'000), {true, "the value 'grad:0'", "/job:worker/replica:0/task:1"})};
  report.tasks[2].status.running = {
      Waiting(40, milliseconds(12'000), {false, "AllReduce 'g'", "/job:worker/replica:0/task:0"})};
  const Verdict verdict = JudgeCluster(report);
  EXPECT_EQ(verdict.text, "worker 1 waits for 12.0 s in AllReduce 'g' for worker 0; 1 other task is not well");
  ASSERT_EQ(verdict.findings.size(), 2u);
  EXPECT_EQ(verdict.findings[1].text, "ps 0 waits for 13.0 s for the value 'grad:0' of worker 1");
}

TEST(VerdictTest, ALostTaskExplainsTheWaitsForIt) {
  ClusterReport report = Healthy();
  report.tasks[2].status.running = {
      Waiting(40, milliseconds(12'000), {false, "AllReduce 'g'", "/job:worker/replica:0/task:0"})};
  Missing(report, 1, Answer::kSilent);
  EXPECT_EQ(JudgeCluster(report).text,
            "worker 0 has not answered for 5.0 s; worker 1 has waited 12.0 s for it in AllReduce 'g'; 1 other task is "
            "not well");
}

// The longest wait tells best in which operation the task was last known.
TEST(VerdictTest, ALostTaskWasLastKnownInTheOperationForWhichOthersWait) {
  ClusterReport report = Healthy();
  const std::string lost = "/job:worker/replica:0/task:0";
  report.tasks[0].status.running = {Waiting(40, milliseconds(3000), {true, "the value 'grad:0'", lost}),
                                    Waiting(41, milliseconds(2000), {false, "AllReduce 'h'", lost})};
  report.tasks[2].status.running = {Waiting(40, milliseconds(1000), {false, "AllReduce 'g'", lost})};
  Missing(report, 1, Answer::kGone).address = "w:0";
  EXPECT_EQ(JudgeCluster(report).text,
            "worker 0 is gone: no process answers at w:0; ps 0 has waited 3.0 s for the value 'grad:0' of it");
}

TEST(VerdictTest, ATaskThatSaysThatItHangs) {
  ClusterReport report = Healthy();
  report.tasks[2].status.running = {
      Waiting(40, milliseconds(12'000), {false, "AllReduce 'g'", "/job:worker/replica:0/task:0"})};
  report.tasks[1].status.hang = "a kernel does not return";
  // Its own step is not named again.
  report.tasks[1].status.running = {
      {.session = 1, .step = 7, .age = milliseconds(61'000), .without_progress = milliseconds(61'000)}};
  const Verdict verdict = JudgeCluster(report);
  EXPECT_FALSE(verdict.well);
  EXPECT_EQ(verdict.text, "worker 0 hangs: a kernel does not return; 1 other task is not well");
  EXPECT_EQ(verdict.findings.size(), 2u);
  EXPECT_EQ(JudgeTask(report.tasks[1].status, {}), "worker 0 hangs: a kernel does not return");
}

// A worker of SyncReplicasOptimizer waits for a token, which may take long. Its parts on other tasks wait for it.
TEST(VerdictTest, AStepThatWaitsInAQueueIsWell) {
  ClusterReport report = Healthy();
  StepStatus in_queue = Waiting(40, milliseconds(60'000), {false, "QueueDequeueV2 'token'", ""});
  in_queue.may_wait = true;
  report.tasks[0].status.running = {in_queue};
  report.tasks[1].status.running = {
      Waiting(40, milliseconds(60'000), {true, "the value 'token:0'", "/job:ps/replica:0/task:0"})};
  EXPECT_TRUE(JudgeCluster(report).well);
  report.tasks[1].status.running[0].step = 41;  // a part of another step
  EXPECT_FALSE(JudgeCluster(report).well);
}

TEST(VerdictTest, AKernelThatDoesNotEnd) {
  ClusterReport report = Healthy();
  report.tasks[1].status.running = {
      {.session = 1, .step = 7, .age = milliseconds(59'000), .without_progress = milliseconds(59'000)}};
  EXPECT_TRUE(JudgeCluster(report).well);
  report.tasks[1].status.running[0].without_progress = milliseconds(61'000);
  EXPECT_EQ(JudgeCluster(report).text, "worker 0 has computed for 61.0 s without progress in step 7");
}

TEST(VerdictTest, SlowAndRestartedTasksAreNoted) {
  ClusterReport report = Healthy(3);
  report.tasks[3].status.steps_per_second = 100;
  report.tasks[0].status.restarts = 2;
  report.tasks[0].status.uptime = milliseconds(4000);
  const Verdict verdict = JudgeCluster(report);
  EXPECT_TRUE(verdict.well);
  ASSERT_EQ(verdict.findings.size(), 2u);
  EXPECT_EQ(verdict.findings[0].text, "ps 0 was started again 2 times; this process is 4.0 s old");
  EXPECT_EQ(verdict.findings[1].text, "worker 2 makes 100 steps/s; the median of the job worker is 4 000");
}

// A chief that sends closures to workers makes few steps itself. An evaluator makes steps now and then.
TEST(VerdictTest, OnlyTasksOfTheSameJobAreCompared) {
  ClusterReport report = Healthy(3);
  for (const char* job : {"chief", "evaluator"}) {
    TaskReport other = report.tasks[1];
    other.job = job;
    other.index = 0;
    other.status.task = StrCat("/job:", job, "/replica:0/task:0");
    other.status.steps_per_second = 4.51;
    report.tasks.insert(report.tasks.begin(), other);
  }
  EXPECT_TRUE(JudgeCluster(report).findings.empty());
  report.tasks.back().status.steps_per_second = 100;
  const Verdict verdict = JudgeCluster(report);
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].text, "worker 2 makes 100 steps/s; the median of the job worker is 4 000");
}

TEST(VerdictTest, ATaskByItself) {
  TaskStatus status = Healthy().tasks[1].status;
  EXPECT_EQ(JudgeTask(status, {}), "");
  status.running = {Waiting(3, milliseconds(9000), {true, "the value 'x:0'", "/job:ps/replica:0/task:0"})};
  EXPECT_EQ(JudgeTask(status, {}), "");  // that is the other task's fault, or it waits in a queue
  status.running = {Waiting(3, milliseconds(9000), {false, "AllReduce 'g'", "/job:worker/replica:0/task:1"})};
  EXPECT_EQ(JudgeTask(status, {}), "worker 0 waits for 9.0 s in AllReduce 'g' for worker 1");
}

TEST(VerdictTest, NumbersForPeople) {
  EXPECT_EQ(GroupedNumber(0), "0");
  EXPECT_EQ(GroupedNumber(-12345), "-12 345");
  EXPECT_EQ(GroupedNumber(1234567), "1 234 567");
  EXPECT_EQ(RateText(0), "0");
  EXPECT_EQ(RateText(0.25), "0.25");
  EXPECT_EQ(RateText(81.25), "81.2");
  EXPECT_EQ(RateText(812.5), "812");
  EXPECT_EQ(RateText(8123), "8 120");
  EXPECT_EQ(RateText(123456), "123 000");
  EXPECT_EQ(DurationText(milliseconds(340)), "0.3 s");
  EXPECT_EQ(DurationText(milliseconds(99'900)), "99.9 s");
  EXPECT_EQ(DurationText(milliseconds(185'000)), "3 min 5 s");
  EXPECT_EQ(DurationText(milliseconds(7'800'000)), "2 h 10 min");
  EXPECT_EQ(ShortTaskName("/job:worker/replica:0/task:1"), "worker 1");
  EXPECT_EQ(ShortTaskName("what?"), "what?");
}

}  // namespace
}  // namespace cohort
