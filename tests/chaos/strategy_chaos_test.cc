// Workers that train one model together are killed, frozen, started late, or do something else: every other one ends
// with an error in time that names the worker. Left alone they end with the weights of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "cohort/core/str_cat.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kWorkers = 3;
constexpr int kLimitMs = 6000;  // 5 s, and time to say so

class StrategyChaos : public ::testing::Test {
 protected:
  StrategyChaos() : cluster_({{"worker", kWorkers}}, {STRATEGY_TASK}) { UseTestToken(); }

  static Arguments Flags(Arguments more = {}) {
    more.push_back("--silence_ms=4000");
    return more;
  }
  std::string Said() { return cluster_.Describe(); }
  // The others' errors, which name `victim`.
  void ExpectOthersFail(int victim, const char* code) {
    for (int w = 0; w < kWorkers; ++w) {
      if (w == victim) continue;
      ASSERT_TRUE(cluster_.WaitForLines("worker", w, "failed", 1)) << Said();
      const std::string line = cluster_.LastLine("worker", w, "failed");
      EXPECT_THAT(line, AllOf(HasSubstr(code), HasSubstr(ProcessCluster::FullName("worker", victim)))) << Said();
      EXPECT_LT(std::stoi(line.substr(line.find(' '))), kLimitMs) << Said();
    }
  }
  static std::vector<double> Numbers(const std::string& line) {
    std::istringstream in(line.substr(line.find(' ')));
    std::vector<double> numbers;
    for (double value = 0; in >> value;) numbers.push_back(value);
    return numbers;
  }

  ProcessCluster cluster_;
};

TEST_F(StrategyChaos, WorkersEndWithTheWeightsOfOneProcess) {
  ProcessCluster one({{"worker", 1}}, {STRATEGY_TASK});
  one.StartAll(Flags());
  // The last one comes late.
  for (const int w : {1, 0}) cluster_.Start("worker", w, Flags());
  ASSERT_TRUE(cluster_.WaitForLines("worker", 0, "ready", 1)) << Said();
  cluster_.Start("worker", 2, Flags());
  ASSERT_TRUE(one.WaitForLines("worker", 0, "end", 1)) << one.Describe();
  const std::vector<double> expected = Numbers(one.LastLine("worker", 0, "weights"));
  ASSERT_GT(expected.size(), 50u);
  for (int w = 0; w < kWorkers; ++w) {
    ASSERT_TRUE(cluster_.WaitForLines("worker", w, "end", 1)) << Said();
    const std::vector<double> got = Numbers(cluster_.LastLine("worker", w, "weights"));
    ASSERT_EQ(got.size(), expected.size());
    double difference = 0, norm = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += (got[i] - expected[i]) * (got[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    EXPECT_LT(std::sqrt(difference / norm), 1e-5) << Said();
    EXPECT_EQ(cluster_.LastLine("worker", w, "weights"), cluster_.LastLine("worker", 0, "weights"));
  }
}

// Before the workers have met nothing is lost: they wait for the one that is started again.
TEST_F(StrategyChaos, AWorkerThatDiesBeforeItMeetsTheOthersIsWaitedFor) {
  for (int w = 0; w < kWorkers; ++w) {
    cluster_.Start("worker", w, w == 1 ? Flags({"--hold=start"}) : Flags({"--epochs=1"}));
  }
  ASSERT_TRUE(cluster_.WaitForLines("worker", 1, "holding", 1)) << Said();
  for (const int w : {0, 2}) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "ready", 1)) << Said();
  cluster_.Kill("worker", 1);
  cluster_.Start("worker", 1, Flags({"--epochs=1"}));
  for (int w = 0; w < kWorkers; ++w) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "end", 1)) << Said();
}

TEST_F(StrategyChaos, AWorkerThatIsKilledAtEachPhase) {
  for (const auto& [phase, victim] : {std::pair{"built", 1}, {"epoch", 0}, {"epoch", 2}, {"end", 1}}) {
    SCOPED_TRACE(phase);
    for (int w = 0; w < kWorkers; ++w) {
      cluster_.Start("worker", w, w == victim ? Flags({StrCat("--hold=", phase)}) : Flags());
    }
    ASSERT_TRUE(cluster_.WaitForLines("worker", victim, "holding", 1)) << Said();
    cluster_.Kill("worker", victim);
    ExpectOthersFail(victim, "Unavailable");
    if (HasFailure()) return;
  }
}

TEST_F(StrategyChaos, AWorkerThatIsFrozen) {
  cluster_.StartAll(Flags({"--epochs=1000", "--pause_ms=5"}));
  for (int w = 0; w < kWorkers; ++w) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "acked", 10)) << Said();
  cluster_.Freeze("worker", 1);
  ExpectOthersFail(1, "Unavailable");
  cluster_.Thaw("worker", 1);
  ASSERT_TRUE(cluster_.WaitForLines("worker", 1, "failed", 1)) << Said();
}

TEST_F(StrategyChaos, AWorkerWithAnotherModelBatchSizeOrData) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> differences = {
      {"--units=9", {"weight dense/kernel: float32[5,7]", "float32[5,9]"}},
      {"--batch_size=6", {"batch_size: 8", "batch_size: 6"}},
      {"--examples=40", {"data: ", "50", "40"}}};
  for (const auto& [flag, named] : differences) {
    SCOPED_TRACE(flag);
    for (int w = 0; w < kWorkers; ++w) cluster_.Start("worker", w, w == 2 ? Flags({flag}) : Flags());
    for (int w = 0; w < kWorkers; ++w) {
      ASSERT_TRUE(cluster_.WaitForLines("worker", w, "failed", 1)) << Said();
      const std::string line = cluster_.LastLine("worker", w, "failed");
      EXPECT_THAT(line, AllOf(HasSubstr("InvalidArgument"), HasSubstr(ProcessCluster::FullName("worker", 2)))) << line;
      for (const std::string& name : named) EXPECT_THAT(line, HasSubstr(name));
    }
  }
}

}  // namespace
}  // namespace cohort::testing
