// Workers that train one model together are killed, frozen, started late, or do something else than the others. Every
// other worker then ends in time, with an error that names the worker. If nothing happens to them, they end with the
// weights of one process.
//
// Each test starts three processes of strategy_task.cc, causes a fault at a named phase, and checks the lines that the
// others print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include "cohort/cluster/server.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/distribute/communication_options.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

constexpr int kWorkers = 3;
// The others notice a lost worker within 5 s. The connections of a killed worker close at once. A frozen worker is lost
// after the silence limit of 4.5 s. The sixth second is for the processes of a busy machine to print their lines.
constexpr int kLimitMs = 6000;

// The parameter is the implementation of communication.
class StrategyChaos : public ::testing::TestWithParam<std::string> {
 protected:
  StrategyChaos() : cluster_({{"worker", kWorkers}}, {STRATEGY_TASK}) { UseTestToken(); }

  static Arguments Flags(Arguments more = {}) {
    more.push_back(StrCat("--silence_ms=", ServerOptions().silence_limit.count()));  // the default
    more.push_back("--implementation=" + GetParam());
    return more;
  }
  // Returns the flags for a training with callbacks that write files.
  Arguments FilesFlags(Arguments more = {}) {
    more.push_back("--folder=" + folder_.path());
    return Flags(more);
  }
  std::string Said() { return cluster_.Describe(); }
  void StartAllBut(int other, const Arguments& flags, const Arguments& flags_of_other) {
    for (int w = 0; w < kWorkers; ++w) cluster_.Start("worker", w, w == other ? flags_of_other : flags);
  }
  // Checks that the worker ends in time after `fault`, with an error. The error names `victim`, and the collective in
  // which the worker waited for it, with its step (the round). A collective that begins after the group has failed has
  // no round.
  void ExpectFails(int worker, int victim, Clock::time_point fault, const char* code = "Unavailable") {
    ASSERT_TRUE(cluster_.WaitForLines("worker", worker, "failed", 1)) << Said();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - fault).count();
    EXPECT_LT(took, kLimitMs) << Said();
    const auto has_round = AnyOf(HasSubstr(", round "), Not(HasSubstr(" failed at rank ")));
    EXPECT_THAT(cluster_.LastLine("worker", worker, "failed"),
                AllOf(HasSubstr(code), HasSubstr(ProcessCluster::FullName("worker", victim)), HasSubstr("' (instance "),
                      has_round))
        << Said();
  }
  void ExpectOthersFail(int victim, Clock::time_point fault) {
    for (int w = 0; w < kWorkers; ++w) {
      if (w != victim) ExpectFails(w, victim, fault);
    }
  }
  void GoOn(int worker) { cluster_.task("worker", worker).Signal(SIGUSR1); }
  // Returns all files below the folder of the callbacks, sorted. Numbers in the names of event files are left out.
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      std::string name = entry.path().string().substr(folder_.path().size() + 1);
      if (const size_t events = name.find("events."); events != std::string::npos) name.resize(events + 6);
      files.push_back(std::move(name));
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  static std::vector<double> Numbers(const std::string& line) {
    std::istringstream in(line.substr(line.find(' ')));
    std::vector<double> numbers;
    for (double value = 0; in >> value;) numbers.push_back(value);
    return numbers;
  }

  const TempFolder folder_;
  ProcessCluster cluster_;
};

TEST_P(StrategyChaos, WorkersEndWithTheWeightsOfOneProcess) {
  ProcessCluster one({{"worker", 1}}, {STRATEGY_TASK});
  one.StartAll(Flags());
  // The last worker starts late.
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

// While the others have not seen it yet, it cannot be lost. They wait until it is started again.
TEST_P(StrategyChaos, AWorkerThatDiesBeforeItMeetsTheOthersIsWaitedFor) {
  cluster_.Start("worker", 1, Flags({"--hold=start"}));
  ASSERT_TRUE(cluster_.WaitForLines("worker", 1, "holding", 1)) << Said();
  cluster_.Kill("worker", 1);
  for (const int w : {0, 2}) cluster_.Start("worker", w, Flags({"--epochs=1"}));
  for (const int w : {0, 2}) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "ready", 1)) << Said();
  cluster_.Start("worker", 1, Flags({"--epochs=1"}));
  for (int w = 0; w < kWorkers; ++w) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "end", 1)) << Said();
}

TEST_P(StrategyChaos, AWorkerThatNeverComesEndsTheOthersAtTheServersOwnDeadline) {
  const auto start = Clock::now();
  for (const int w : {0, 2}) cluster_.Start("worker", w, Flags({"--connect_timeout_secs=2"}));
  for (const int w : {0, 2}) ExpectFails(w, 1, start, "DeadlineExceeded");
}

struct Phase {
  const char* name;
  int victim;
  bool writes = false;  // whether there are callbacks that write files
};
constexpr Phase kPhases[] = {{"built", 1},        {"epoch", 0},     {"epoch", 2}, {"checkpoint", 0, true},
                             {"backup", 1, true}, {"end", 0, true}, {"end", 1}};

TEST_P(StrategyChaos, AWorkerThatIsKilledAtEachPhase) {
  for (const Phase& phase : kPhases) {
    SCOPED_TRACE(phase.name);
    const Arguments flags = phase.writes ? FilesFlags() : Flags(), hold = {StrCat("--hold=", phase.name)};
    StartAllBut(phase.victim, flags, phase.writes ? FilesFlags(hold) : Flags(hold));
    ASSERT_TRUE(cluster_.WaitForLines("worker", phase.victim, "holding", 1)) << Said();
    cluster_.Kill("worker", phase.victim);
    ExpectOthersFail(phase.victim, Clock::now());
    if (HasFailure()) return;
  }
  // Files that were written before do not stop a later training.
  for (int w = 0; w < kWorkers; ++w) cluster_.Start("worker", w, FilesFlags());
  for (int w = 0; w < kWorkers; ++w) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "end", 1)) << Said();
}

TEST_P(StrategyChaos, AWorkerThatIsFrozenAtEachPhase) {
  for (const Phase& phase : kPhases) {
    SCOPED_TRACE(phase.name);
    const Arguments flags = phase.writes ? FilesFlags() : Flags(), hold = {StrCat("--hold=", phase.name)};
    StartAllBut(phase.victim, flags, phase.writes ? FilesFlags(hold) : Flags(hold));
    ASSERT_TRUE(cluster_.WaitForLines("worker", phase.victim, "holding", 1)) << Said();
    cluster_.Freeze("worker", phase.victim);
    ExpectOthersFail(phase.victim, Clock::now());
    if (HasFailure()) return;
    cluster_.Thaw("worker", phase.victim);
    GoOn(phase.victim);
    ASSERT_TRUE(cluster_.WaitForLines("worker", phase.victim, "failed", 1)) << Said();
  }
}

TEST_P(StrategyChaos, AWorkerThatIsFrozenWhileAllTrain) {
  cluster_.StartAll(Flags({"--epochs=1000", "--pause_ms=5"}));
  for (int w = 0; w < kWorkers; ++w) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "acked", 10)) << Said();
  cluster_.Freeze("worker", 1);
  ExpectOthersFail(1, Clock::now());
  for (const int w : {0, 2}) {
    EXPECT_THAT(cluster_.LastLine("worker", w, "failed"),
                ContainsRegex("'[^']+' \\(instance [0-9]+, round [0-9]+\\), (all-|reduce-|broadcast|barrier)"))
        << Said();
  }
  cluster_.Thaw("worker", 1);
  ASSERT_TRUE(cluster_.WaitForLines("worker", 1, "failed", 1)) << Said();
}

// The server of this worker was connected. The others wait for it in the first collective.
TEST_P(StrategyChaos, AWorkerThatIsLostAtTheStart) {
  for (const bool frozen : {false, true}) {
    SCOPED_TRACE(frozen ? "frozen" : "killed");
    cluster_.Start("worker", 1, Flags({"--hold=start"}));
    ASSERT_TRUE(cluster_.WaitForLines("worker", 1, "holding", 1)) << Said();
    for (const int w : {0, 2}) cluster_.Start("worker", w, Flags({"--hold=first_collective"}));
    for (const int w : {0, 2}) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "holding", 1)) << Said();
    if (frozen) {
      cluster_.Freeze("worker", 1);
    } else {
      cluster_.Kill("worker", 1);
    }
    ExpectOthersFail(1, Clock::now());
    if (HasFailure()) return;
  }
}

// The first collective begins when all workers have come. One of two workers that wait for the third is lost. The third
// is told so when it comes.
TEST_P(StrategyChaos, AWorkerThatIsLostInTheFirstCollective) {
  for (const bool frozen : {false, true}) {
    for (const int victim : {0, 1}) {
      SCOPED_TRACE(StrCat(frozen ? "frozen " : "killed ", victim));
      const int other = 1 - victim;
      cluster_.Start("worker", other, Flags());
      cluster_.Start("worker", 2, Flags({"--hold=start"}));
      cluster_.Start("worker", victim, Flags({"--hold=first_collective"}));
      for (const int w : {victim, 2}) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "holding", 1)) << Said();
      ASSERT_TRUE(cluster_.WaitForLines("worker", other, "ready", 1)) << Said();
      if (frozen) {
        cluster_.Freeze("worker", victim);
      } else {
        cluster_.Kill("worker", victim);
      }
      ExpectFails(other, victim, Clock::now());
      GoOn(2);
      ExpectFails(2, victim, Clock::now());
      if (HasFailure()) return;
    }
  }
}

// In each phase one worker takes longer than the silence limit.
TEST_P(StrategyChaos, AWorkerThatIsLateAtEachPhaseIsWaitedFor) {
  const Arguments flags = {"--silence_ms=2000", "--epochs=1", "--folder=" + folder_.path(),
                           "--implementation=" + GetParam()};
  Arguments late = flags;
  late.emplace_back("--hold=every");
  std::string expected;
  for (const int victim : {0, 1}) {
    StartAllBut(victim, flags, late);
    std::vector<std::string> phases = {"start", "built", "epoch", "backup", "end"};
    if (victim == 0) phases.insert(phases.end() - 1, "checkpoint");
    for (const std::string& phase : phases) {
      SCOPED_TRACE(phase);
      ASSERT_TRUE(cluster_.WaitForLines("worker", victim, "holding " + phase, 1)) << Said();
      std::this_thread::sleep_for(std::chrono::milliseconds(3000));
      GoOn(victim);
    }
    for (int w = 0; w < kWorkers; ++w) {
      ASSERT_TRUE(cluster_.WaitForLines("worker", w, "end", 1)) << Said();
      if (expected.empty()) expected = cluster_.LastLine("worker", w, "weights");
      EXPECT_EQ(cluster_.LastLine("worker", w, "weights"), expected) << Said();
    }
  }
}

TEST_P(StrategyChaos, OnlyTheChiefsFilesStay) {
  ProcessCluster two({{"worker", 2}}, {STRATEGY_TASK});
  two.StartAll(FilesFlags());
  for (int w = 0; w < 2; ++w) {
    ASSERT_TRUE(two.WaitForLines("worker", w, "end", 1)) << two.Describe();
    EXPECT_EQ(two.task("worker", w).Wait(), 0);
  }
  EXPECT_THAT(Files(), ElementsAre("backup", "log.csv", "logs", "logs/train", "logs/train/events", "model.keras", "own",
                                   "own/epoch.txt"));
}

TEST_P(StrategyChaos, AWorkerWithAnotherModelBatchSizeOrData) {
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

std::vector<std::string> Implementations() {
  std::vector<std::string> names = {"AUTO"};
  if (distribute::IsBuilt(distribute::CommunicationImplementation::kGloo)) names.emplace_back("GLOO");
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, StrategyChaos, ::testing::ValuesIn(Implementations()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cohort::testing
