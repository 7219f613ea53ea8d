// Floods: processes without the token connect to a parameter server and to a worker in every way that could use up
// their time, memory or descriptors (strangers/attacks.h). Training must go on, memory stays bounded, descriptors come
// back, and a new process can join during the flood. The strangers run in the test's process, and so on the cores of
// the training. The test prints how many steps a second it makes without them, with them, and beside an imitation that
// takes as much processor time and leaves the tasks alone. What the last two differ by is what the tasks spend on
// strangers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "cohort/cluster/testing/test_certificates.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/count_entries.h"
#include "tests/chaos/counting_model.h"
#include "tests/chaos/process_cluster.h"
#include "tests/chaos/strangers/attacker.h"

namespace cohort::testing {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMostMemory = 64 * kMiB;  // that a task may take in addition
constexpr int kDescriptors = 1024;          // the usual limit of a process

int64_t MemoryOf(pid_t pid) {
  std::ifstream in(StrCat("/proc/", pid, "/status"));
  for (std::string word; in >> word;) {
    if (word != "VmRSS:") continue;
    int64_t kib = 0;
    in >> kib;
    return kib * 1024;
  }
  return 0;
}

int DescriptorsOf(pid_t pid) { return CountEntries(StrCat("/proc/", pid, "/fd").c_str()); }

class FloodTest : public ::testing::TestWithParam<Attack> {
 protected:
  void SetUp() override {
    UseTestToken();
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);  // for the attackers
    if (limit.rlim_max < 2 * kIdle + 200) GTEST_SKIP() << "the test may open only " << limit.rlim_max << " descriptors";
    if (!GetParam().tls) return;
    certificates_.emplace();
    for (const auto& [job, index] : {std::pair("ps", 0), std::pair("worker", 0), std::pair("worker", 1)}) {
      certificates_->For(job, index);
    }
    certificates_->For("client");
    setenv("COHORT_TLS_FOLDER", certificates_->folder().path().c_str(), 1);
  }
  void TearDown() override { unsetenv("COHORT_TLS_FOLDER"); }

  // A line of the worker stands for so many steps.
  static int StepsOfALine() { return GetParam().pause_ms == 0 ? 100 : 10; }
  // Waits for `more` lines of worker 0.
  static bool WaitForMore(ProcessCluster& cluster, int more) {
    return cluster.WaitForLines("worker", 0, "acked", cluster.CountLines("worker", 0, "acked") + more);
  }
  // Returns how many steps a second worker 0 makes, over a hundred lines.
  static double StepsPerSecond(ProcessCluster& cluster) {
    EXPECT_TRUE(WaitForMore(cluster, 1)) << cluster.Describe();
    const auto start = std::chrono::steady_clock::now();
    const int before = cluster.CountLines("worker", 0, "acked");
    EXPECT_TRUE(WaitForMore(cluster, 100)) << cluster.Describe();
    const int made = StepsOfALine() * (cluster.CountLines("worker", 0, "acked") - before);
    return made / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  std::optional<TestCertificates> certificates_;
};

TEST_P(FloodTest, TrainingGoesOnAndNothingIsUsedUp) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  ProcessCluster::Surroundings usual;
  usual.in_child = [] {
    const rlimit limit{kDescriptors, kDescriptors};
    setrlimit(RLIMIT_NOFILE, &limit);
  };
  const Arguments flags = {"--silence_ms=4500", StrCat("--pause_ms=", GetParam().pause_ms), "--orphan_ms=0",
                           StrCat("--ack_every=", StepsOfALine())};
  cluster.Start("ps", 0, flags, usual);
  cluster.Start("worker", 0, flags, usual);
  ASSERT_TRUE(WaitForMore(cluster, 20)) << cluster.Describe();
  const double usual_rate = StepsPerSecond(cluster);
  const std::vector<pid_t> tasks = {cluster.task("ps", 0).pid(), cluster.task("worker", 0).pid()};
  std::vector<int64_t> memory;
  std::vector<int> descriptors;
  for (const pid_t pid : tasks) {
    memory.push_back(MemoryOf(pid));
    descriptors.push_back(DescriptorsOf(pid));
  }
  Work work;
  double rate = 0;
  {
    const Attacker attacker(GetParam(), {cluster.address("ps", 0), cluster.address("worker", 0)});
    const Work before = attacker.work();
    rate = StepsPerSecond(cluster);
    work = attacker.work().Since(before);
    cluster.Start("worker", 1, flags, usual);
    EXPECT_TRUE(cluster.WaitForLines("worker", 1, "acked", 5)) << cluster.Describe();
    for (size_t i = 0; i < tasks.size(); ++i) {
      EXPECT_LE(MemoryOf(tasks[i]), memory[i] + kMostMemory) << "task " << i;
      EXPECT_LT(DescriptorsOf(tasks[i]), kDescriptors / 2) << "task " << i;
    }
    EXPECT_GE(attacker.work().connections, GetParam().held > 0 ? GetParam().held : 10);
  }
  EXPECT_EQ(cluster.CountLines("worker", 0, "failed"), 0) << cluster.Describe();
  cluster.Kill("worker", 1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  for (size_t i = 0; i < tasks.size(); ++i) {
    // The sockets of the attackers are closed; the tasks see it in their own time.
    while (DescriptorsOf(tasks[i]) > descriptors[i] && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_LE(DescriptorsOf(tasks[i]), descriptors[i]) << "task " << i;
    EXPECT_LE(MemoryOf(tasks[i]), memory[i] + kMostMemory) << "task " << i;
  }
  EXPECT_THAT(cluster.task("ps", 0).err(), ::testing::HasSubstr("refused a connection from 127.0.0.1:"));
  const int before = cluster.CountLines("worker", 0, "acked");
  double imitated_rate = 0;
  {
    const Imitator imitator(work, 2 * GetParam().threads);
    imitated_rate = StepsPerSecond(cluster);
  }
  std::printf(
      "%.0f steps/s without strangers, %.0f with them (%.0f %%), %.0f beside an imitation (so %.0f %%); strangers: "
      "%.0f "
      "connections/s, %.2f cores\n",
      usual_rate, rate, 100 * rate / usual_rate, imitated_rate, 100 * rate / imitated_rate,
      static_cast<double>(work.connections) / work.seconds, work.processor_seconds / work.seconds);
  EXPECT_GE(ReadModel(cluster.spec()).global_step, StepsOfALine() * before);
}

INSTANTIATE_TEST_SUITE_P(All, FloodTest, ::testing::ValuesIn(AllAttacks()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cohort::testing
