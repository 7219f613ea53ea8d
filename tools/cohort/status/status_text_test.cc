#include "tools/cohort/status/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace cohort::tools {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ClusterReport Report() {
  ClusterReport report;
  report.time_limit = milliseconds(5000);
  TaskReport ps{.job = "ps", .index = 0, .address = "127.0.0.1:1", .answer = TaskReport::Answer::kStatus};
  ps.status.task = "/job:ps/replica:0/task:0";
  ps.status.host = "node1";
  ps.status.pid = 12;
  ps.status.activity = TaskActivity::kRunning;
  ps.status.global_step = 12300;
  ps.status.global_steps_per_second = 81;
  ps.status.steps_per_second = 4000;
  ps.status.shares = {.data = 0, .compute = 0.5, .wait = 0.125};
  ps.status.sent_per_second = 1.5e6;
  ps.status.memory_bytes = 120'000'000;
  ps.status.variables = 3;
  ps.status.variable_bytes = 4'000;
  ps.status.uptime = milliseconds(90'000);
  ps.status.incarnation = 0xfffffffffffffff0;
  report.tasks = {ps, {.job = "worker", .index = 0, .address = "127.0.0.1:2", .why_not = "no answer for 5 s"}};
  report.tasks[1].answer = TaskReport::Answer::kSilent;
  return report;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(StatusTextTest, VerdictTableAndWhatIsNotWell) {
  const ClusterReport report = Report();
  const std::vector<std::string> lines = Lines(StatusText(report, JudgeCluster(report)));
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_EQ(lines[0], "worker 0 has not answered for 5.0 s");
  EXPECT_EQ(lines[1], "");
  EXPECT_THAT(lines[2], StartsWith("TASK      STATE"));
  EXPECT_THAT(lines[3],
              AllOf(StartsWith("ps 0      running    12 300"), HasSubstr(" 4 000 "), HasSubstr(" 50% "),
                    HasSubstr("1.5 MB"), HasSubstr("120 MB"), HasSubstr("3, 4.0 kB"), HasSubstr("  ffffffff  90.0 s")));
  EXPECT_THAT(lines[4], StartsWith("worker 0  no answer       -"));
  EXPECT_EQ(lines[6], "worker 0 at 127.0.0.1:2");
  EXPECT_EQ(lines[7], "  worker 0 has not answered for 5.0 s");
  EXPECT_EQ(lines[8], "  no answer for 5 s");
}

TEST(StatusTextTest, OfAHealthyClusterOnlyTheTable) {
  ClusterReport report = Report();
  report.tasks.pop_back();
  EXPECT_EQ(Lines(StatusText(report, JudgeCluster(report))).size(), 4u);
}

TEST(StatusTextTest, StepsAndPeersOfATaskWithAFinding) {
  ClusterReport report = Report();
  report.tasks.pop_back();
  TaskStatus& status = report.tasks[0].status;
  status.running = {{.step = 7,
                     .age = milliseconds(9000),
                     .without_progress = milliseconds(8000),
                     .waits = {{true, "the value 'x:0'", "/job:worker/replica:0/task:1"}}}};
  status.peers = {{"/job:client/replica:0/task:9", "", true, milliseconds(0)},
                  {"/job:worker/replica:0/task:1", "127.0.0.1:3", false, milliseconds(7000)}};
  const std::string text = StatusText(report, JudgeCluster(report));
  EXPECT_THAT(text, HasSubstr("\nps 0 at 127.0.0.1:1, pid 12 on node1\n"));
  EXPECT_THAT(text, HasSubstr("  step 7: 9.0 s old, no progress for 8.0 s; waits for the value 'x:0' of worker 1\n"));
  EXPECT_THAT(text, HasSubstr("  worker 1 is lost, last heard of 7.0 s ago\n"));
  EXPECT_THAT(text, Not(HasSubstr("client")));
}

TEST(StatusTextTest, ControlCharactersOfTasksDoNotReachTheTerminal) {
  ClusterReport report = Report();
  report.tasks[1].why_not = "bad \033]0;title\007 text\rnext";
  EXPECT_THAT(StatusText(report, JudgeCluster(report)),
              Not(AnyOf(HasSubstr("\033"), HasSubstr("\r"), HasSubstr("\007"))));
}

TEST(StatusTextTest, JsonHasTheSameFigures) {
  const ClusterReport report = Report();
  const nlohmann::json json = nlohmann::json::parse(StatusJson(report, JudgeCluster(report)));
  EXPECT_EQ(json["well"], false);
  EXPECT_EQ(json["verdict"], "worker 0 has not answered for 5.0 s");
  EXPECT_EQ(json["findings"][0]["job"], "worker");
  EXPECT_EQ(json["findings"][0]["unwell"], true);
  const nlohmann::json& ps = json["tasks"][0];
  EXPECT_EQ(ps["job"], "ps");
  EXPECT_EQ(ps["answer"], "status");
  EXPECT_EQ(ps["state"], "running");
  EXPECT_EQ(ps["global_step"], 12300);
  EXPECT_EQ(ps["steps_per_second"], 4000.0);
  EXPECT_EQ(ps["time_shares"]["compute"], 0.5);
  EXPECT_EQ(ps["incarnation"], "18446744073709551600");
  EXPECT_EQ(json["tasks"][1]["answer"], "silent");
  EXPECT_EQ(json["tasks"][1]["error"], "no answer for 5 s");
  EXPECT_FALSE(json["tasks"][1].contains("state"));
}

TEST(StatusTextTest, JsonIsAlwaysUtf8) {
  ClusterReport report = Report();
  report.tasks[1].why_not = "\xff\xfe";
  EXPECT_NO_THROW(nlohmann::json::parse(StatusJson(report, JudgeCluster(report))));
  EXPECT_EQ(nlohmann::json::parse(StatusJson("no cluster"))["well"], false);
}

TEST(StatusTextTest, NamesOfTasks) {
  for (const char* text : {"worker/1", "worker:1", "worker 1", "/job:worker/task:1", "/job:worker/replica:0/task:1"}) {
    EXPECT_EQ(ParseTaskName(text), std::pair(std::string("worker"), 1)) << text;
  }
  for (const char* text :
       {"", "worker", "worker/", "/1", "worker/x", "worker/-1", "worker/1x", "/job:worker", "/job:"}) {
    EXPECT_EQ(ParseTaskName(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace cohort::tools
