// Runs `cohort status` and `cohort top` on clusters of real processes: one that trains, one with a frozen worker, one
// whose ps was killed, and one whose worker waits in a collective.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "cohort/cluster/testing/http_client.h"
#include "cohort/cluster/testing/metrics_reader.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

struct Answer {
  int code = -1;
  std::string out;
  std::string err;
  std::string FirstLine() const { return out.substr(0, out.find('\n')); }
};

Answer Cohort(const Arguments& words, const std::function<void()>& in_child = nullptr) {
  Arguments command = {COHORT_PROGRAM};
  command.insert(command.end(), words.begin(), words.end());
  LaunchedProgram program(command, in_child);
  const int code = program.Wait();
  return {code, program.out(), program.err()};
}

// Asks again and again until `good` is true of the JSON, because rates appear after a second.
json AskUntil(const std::string& address, const std::function<bool(const json&)>& good) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  for (;;) {
    const Answer answer = Cohort({"status", address, "--json", "--timeout=30"});
    json status = json::parse(answer.out, nullptr, /*allow_exceptions=*/false);
    if (status.is_discarded()) {
      ADD_FAILURE() << answer.out << answer.err;
      return {};
    }
    EXPECT_EQ(answer.code, status["well"] == true ? 0 : 1);
    if (good(status)) return status;
    if (std::chrono::steady_clock::now() >= deadline) {
      ADD_FAILURE() << "not in time: " << status.dump(1);
      return status;
    }
  }
}

class StatusChaosTest : public ::testing::Test {
 protected:
  void SetUp() override { UseTestToken(); }
};

void ExpectProgress(ProcessCluster& cluster, int workers) {
  for (int w = 0; w < workers; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 10)) << cluster.Describe();
}

TEST_F(StatusChaosTest, ATrainingThatIsWell) {
  const TempFolder folder;
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll({"--pause_ms=5", "--logdir=" + folder / "logs"});
  ExpectProgress(cluster, 2);
  const json status = AskUntil(cluster.address("worker", 1), [](const json& now) {
    return now["well"] == true && now["tasks"][0]["global_steps_per_second"] > 0.0 &&
           now["tasks"][3]["steps_per_second"] > 0.0;
  });
  EXPECT_THAT(status["verdict"].get<std::string>(),
              MatchesRegex("all 4 tasks are well, step [0-9 ]+, [0-9. ]+ steps/s"));
  ASSERT_EQ(status["tasks"].size(), 4u);
  const json& ps = status["tasks"][0];
  EXPECT_EQ(ps["job"], "ps");
  EXPECT_EQ(ps["answer"], "status");
  EXPECT_EQ(ps["address"], cluster.address("ps", 0));
  EXPECT_EQ(ps["state"], "running");
  EXPECT_EQ(ps["pid"], cluster.task("ps", 0).pid());
  EXPECT_GE(ps["global_step"], 20);
  EXPECT_GT(ps["variables"], 0);
  EXPECT_GT(ps["received_bytes"], 0);
  EXPECT_GT(ps["memory_bytes"], 1'000'000);
  EXPECT_EQ(ps["restarts"], 0);
  EXPECT_EQ(status["tasks"][2]["is_chief"], true);
  // For people, by the folder into which the chief has written the addresses.
  const Answer text = Cohort({"status", "--logdir=" + folder / "logs", "--timeout=30"});
  EXPECT_EQ(text.code, 0) << text.out << text.err;
  EXPECT_THAT(text.FirstLine(), StartsWith("all 4 tasks are well, step "));
  EXPECT_THAT(text.out, ContainsRegex("worker 0 \\(chief\\) +running"));
}

TEST_F(StatusChaosTest, TopRepeatsTheTable) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.StartAll({"--pause_ms=5"});
  ExpectProgress(cluster, 1);
  const Answer top = Cohort({"top", cluster.address("ps", 0), "--interval=0.1", "--count=3", "--timeout=30"});
  EXPECT_EQ(top.code, 0) << top.out << top.err;
  EXPECT_THAT(top.out, ContainsRegex("^all 2 tasks are well.*\n\nTASK(.*\n)+\nall 2 tasks(.*\n)+\nall 2 tasks"));
  EXPECT_THAT(top.out, Not(HasSubstr("\033")));  // stdout is no terminal
}

TEST_F(StatusChaosTest, AFrozenWorker) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.StartAll({"--pause_ms=5", "--silence_ms=1500", "--heartbeat_ms=200"});
  ExpectProgress(cluster, 2);
  cluster.Freeze("worker", 1);
  const Answer status = Cohort({"status", cluster.address("ps", 0), "--timeout=2"});
  EXPECT_EQ(status.code, 1);
  EXPECT_THAT(status.FirstLine(), MatchesRegex("worker 1 has not answered for [0-9.]+ s.*")) << status.out;
  EXPECT_THAT(status.out, ContainsRegex("worker 1 +no answer +-"));
  EXPECT_THAT(status.out, ContainsRegex("ps 0 +running"));
  // The frozen task itself cannot say what the cluster is.
  const Answer frozen = Cohort({"status", cluster.address("worker", 1), "--timeout=1"});
  EXPECT_EQ(frozen.code, 1);
  EXPECT_THAT(frozen.err, HasSubstr(cluster.address("worker", 1)));
  cluster.Thaw("worker", 1);
}

TEST_F(StatusChaosTest, AKilledParameterServer) {
  const TempFolder folder;
  ProcessCluster cluster({{"ps", 2}, {"worker", 2}});
  cluster.StartAll({"--pause_ms=5", "--recover=1", "--connect_secs=2", "--logdir=" + folder / "logs"});
  ExpectProgress(cluster, 2);
  cluster.Kill("ps", 1);
  const Answer status = Cohort({"status", cluster.address("worker", 0), "--timeout=30"});
  EXPECT_EQ(status.code, 1);
  EXPECT_THAT(status.FirstLine(),
              StartsWith(StrCat("ps 1 is gone: no process answers at ", cluster.address("ps", 1), "; the others")))
      << status.out;
  EXPECT_THAT(status.out, ContainsRegex("ps 1 +gone +-"));
  // By the folder it works also if the first address of the file is that of a dead task.
  cluster.Kill("ps", 0);
  const Answer both = Cohort({"status", "--logdir=" + folder / "logs", "--timeout=30", "--json"});
  EXPECT_EQ(both.code, 1);
  const json parsed = json::parse(both.out);
  EXPECT_EQ(parsed["tasks"][0]["answer"], "gone");
  EXPECT_EQ(parsed["tasks"][2]["answer"], "status");
}

TEST_F(StatusChaosTest, AWorkerThatWaitsInACollective) {
  ProcessCluster cluster({{"worker", 2}}, {COLLECTIVE_TASK});
  cluster.Start("worker", 0, {"--count=1000", "--pause_ms=600000"});
  cluster.Start("worker", 1, {"--count=1000"});
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 1)) << cluster.Describe();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  Answer status;
  do {
    status = Cohort({"status", cluster.address("worker", 0), "--timeout=30", "--stuck_after=1"});
  } while (status.code == 0 && std::chrono::steady_clock::now() < deadline);
  EXPECT_EQ(status.code, 1);
  EXPECT_THAT(status.FirstLine(),
              ContainsRegex("^worker 1 waits for [0-9.]+ s in Collective[A-Za-z0-9]* 'gradients/(large|small)' for "
                            "worker 0"))
      << status.out;
  EXPECT_THAT(status.out, ContainsRegex("\n  step [0-9]+: .* no progress for "));
  // If the task does not answer any more, its line says in which operation it was last known.
  cluster.Freeze("worker", 0);
  const Answer frozen = Cohort({"status", cluster.address("worker", 1), "--timeout=3"});
  EXPECT_EQ(frozen.code, 1);
  EXPECT_THAT(frozen.FirstLine(),
              ContainsRegex("^worker 0 has not answered for .*; worker 1 has waited [0-9.]+ s for it in "
                            "Collective[A-Za-z0-9]* 'gradients/(large|small)'"))
      << frozen.out;
  cluster.Thaw("worker", 0);
}

TEST_F(StatusChaosTest, TheDumpOfATask) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.StartAll({"--pause_ms=5"});
  ExpectProgress(cluster, 1);
  const Answer dump = Cohort({"status", cluster.address("ps", 0), "--dump=worker/0", "--timeout=30"});
  EXPECT_EQ(dump.code, 0) << dump.err;
  EXPECT_THAT(dump.out, HasSubstr("/job:worker/replica:0/task:0"));
  EXPECT_EQ(Cohort({"status", cluster.address("ps", 0), "--dump=worker/7", "--timeout=30"}).code, 1);
}

TEST_F(StatusChaosTest, AClientWithoutTheTokenLearnsNothing) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.StartAll({"--pause_ms=5"});
  ExpectProgress(cluster, 1);
  for (const char* flag : {"--json", "--dump=ps/0"}) {
    const Answer answer = Cohort({"status", cluster.address("ps", 0), flag, "--timeout=30"},
                                 [] { setenv("COHORT_TOKEN", "the-token-of-another-job", 1); });
    EXPECT_EQ(answer.code, 1);
    for (const std::string& text : {answer.out, answer.err}) {
      EXPECT_THAT(text, Not(HasSubstr("job:worker"))) << text;
      EXPECT_THAT(text, Not(HasSubstr(cluster.address("worker", 0))));
      EXPECT_THAT(text, Not(HasSubstr(StrCat(cluster.task("ps", 0).pid()))));
    }
  }
}

TEST_F(StatusChaosTest, WrongCommandLines) {
  for (const Arguments& words : std::vector<Arguments>{{"status"},
                                                       {"status", "127.0.0.1"},
                                                       {"status", "127.0.0.1:1", "--logdir=x"},
                                                       {"status", "127.0.0.1:1", "--timeout=0"},
                                                       {"status", "127.0.0.1:1", "--dump=worker"},
                                                       {"status", "127.0.0.1:1", "--json", "--dump=worker/0"},
                                                       {"top"},
                                                       {"top", "127.0.0.1:1", "--interval=0"}}) {
    EXPECT_EQ(Cohort(words).code, 2) << StrJoin(words, " ");
  }
  EXPECT_EQ(Cohort({"status", "127.0.0.1:1", "--timeout=5"}).code, 1);  // nobody listens there
  EXPECT_EQ(Cohort({"status", "--logdir=/nowhere"}).code, 1);
}

// The launcher's own token is in a file, which its line names, and the metrics are at the ports that it prints.
TEST_F(StatusChaosTest, ALaunchSaysHowToLookAtIt) {
  const TempFolder folder;
  const auto own_environment = [&] {
    unsetenv("COHORT_TOKEN");
    setenv("XDG_RUNTIME_DIR", (folder / "run").c_str(), 1);
  };
  LaunchedProgram launch(
      {COHORT_PROGRAM, "launch", "--ps=1", "--workers=1", "--restart=3", "--metrics", "--", CHAOS_TASK, "--pause_ms=5"},
      own_environment);
  ASSERT_TRUE(launch.WaitForText("acked 10")) << launch.out() << launch.err();
  ASSERT_TRUE(launch.WaitForText("metrics of worker/0")) << launch.err();
  const std::string said = launch.out() + launch.err();
  std::smatch line;
  ASSERT_TRUE(std::regex_search(said, line, std::regex("COHORT_TOKEN_FILE=(\\S+) cohort status (\\S+)"))) << said;
  const std::string token_file = line[1];
  const auto with_file = [&] {
    unsetenv("COHORT_TOKEN");
    setenv("COHORT_TOKEN_FILE", token_file.c_str(), 1);
  };
  EXPECT_EQ(Cohort({"status", line[2], "--timeout=30"}, with_file).code, 0);

  std::smatch metrics;
  ASSERT_TRUE(std::regex_search(said, metrics, std::regex("metrics of ps/0: http://127.0.0.1:([0-9]+)/metrics")));
  const int port = std::stoi(metrics[1]);
  const Metrics page = ReadMetrics(Fetch(port, "/metrics").body);
  EXPECT_GE(page.at("cohort_global_step{job=\"ps\",task=\"0\"}"), 1);
  EXPECT_EQ(page.at("cohort_restarts{job=\"ps\",task=\"0\"}"), 0);
  EXPECT_EQ(Fetch(port, "/healthz").code, 200);

  // A task that was started again says so, at the same addresses.
  const std::vector<pid_t> servers = NumbersAfter(said, " pid ");
  ASSERT_FALSE(servers.empty());
  kill(servers[0], SIGKILL);
  ASSERT_TRUE(launch.WaitForText("serving ", static_cast<int>(servers.size()) + 1)) << launch.out() << launch.err();
  const Answer status = Cohort({"status", line[2], "--timeout=30", "--json"}, with_file);
  int64_t restarts = 0;
  const json parsed = json::parse(status.out);
  for (const json& task : parsed["tasks"]) restarts += task.value("restarts", 0);
  EXPECT_GE(restarts, 1) << status.out;
  launch.Signal(SIGTERM);
  launch.Wait();
  EXPECT_FALSE(FileExists(token_file));
}

}  // namespace
}  // namespace cohort::testing
