// Members of a group reduce in every step. A member is killed, frozen, started late, or calls another collective. Every
// other member then gets an error in time, which names the member, the collective and the step.
//
// Each test starts the processes of collective_task.cc, causes a fault, and checks the lines that the others print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/cluster/server.h"
#include "cohort/collective/group.h"
#include "cohort/core/str_cat.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kWorkers = 3;
// The others notice a fault within this time. The connections of a killed member close at once. A frozen member is lost
// after the silence limit of 4.5 s.
constexpr int kLimitMs = 5000;

// A case has vectors of one message, or of many.
struct Case {
  int64_t count;
  bool gloo = false;
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.count << "_elements" << (one.gloo ? "_by_gloo" : "");
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {{1000}, {1'000'000}};
  if (collective::IsBuilt(collective::Algorithm::kGloo)) cases.insert(cases.end(), {{1000, true}, {1'000'000, true}});
  return cases;
}

class CollectiveChaos : public ::testing::TestWithParam<Case> {
 protected:
  CollectiveChaos() : cluster_({{"worker", kWorkers}}, {COLLECTIVE_TASK}) { UseTestToken(); }

  static Arguments Flags(Arguments more = {}) {
    more.push_back(StrCat("--count=", GetParam().count));
    if (GetParam().gloo) more.push_back("--gloo=1");
    more.push_back(StrCat("--silence_ms=", ServerOptions().silence_limit.count()));  // the default
    return more;
  }
  void ExpectProgress(int steps) {
    for (int w = 0; w < kWorkers; ++w) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "acked", steps)) << Said();
  }
  std::string Said() { return cluster_.Describe(); }
  // Returns the worker's text about the step that failed. Checks its time.
  std::string Failure(int worker) {
    EXPECT_TRUE(cluster_.WaitForLines("worker", worker, "failed", 1)) << Said();
    std::istringstream line(cluster_.LastLine("worker", worker, "failed"));
    std::string word;
    int ms = kLimitMs;
    line >> word >> ms;
    EXPECT_LT(ms, kLimitMs) << Said();
    return line.str();
  }
  static auto NamesMember(int worker) {
    return AllOf(HasSubstr(StrCat("rank ", worker)), HasSubstr(ProcessCluster::FullName("worker", worker)));
  }
  static auto NamesCollective() {
    return AnyOf(HasSubstr("'gradients/large' (instance 1"), HasSubstr("'gradients/small' (instance 2"));
  }

  ProcessCluster cluster_;
};

TEST_P(CollectiveChaos, AMemberThatIsKilled) {
  for (int victim = 0; victim < kWorkers; ++victim) {
    for (int w = 0; w < kWorkers; ++w) cluster_.Start("worker", w, Flags());
    ExpectProgress(5);
    cluster_.Kill("worker", victim);
    for (int w = 0; w < kWorkers; ++w) {
      if (w == victim) continue;
      // A call that begins after the failure has no round.
      const auto has_round = AnyOf(HasSubstr("round "), Not(HasSubstr(" failed at rank ")));
      EXPECT_THAT(Failure(w), AllOf(HasSubstr("Unavailable"), NamesMember(victim), NamesCollective(), has_round))
          << Said();
    }
    if (HasFailure()) return;
  }
}

TEST_P(CollectiveChaos, AMemberThatIsFrozen) {
  cluster_.StartAll(Flags());
  ExpectProgress(5);
  cluster_.Freeze("worker", 1);
  for (const int w : {0, 2}) {
    EXPECT_THAT(Failure(w), AllOf(HasSubstr("Unavailable"), HasSubstr("no byte for "), NamesMember(1),
                                  NamesCollective(), HasSubstr("round ")))
        << Said();
  }
  cluster_.Thaw("worker", 1);
  Failure(1);
}

TEST_P(CollectiveChaos, ACollectivesOwnDeadlineComesBeforeTheSilenceLimit) {
  cluster_.StartAll(Flags({"--timeout_ms=1000"}));
  ExpectProgress(5);
  cluster_.Freeze("worker", 2);
  for (const int w : {0, 1}) {
    EXPECT_THAT(Failure(w), AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("1000 ms"), NamesCollective(),
                                  HasSubstr("round "), HasSubstr("waits for rank ")))
        << Said();
  }
}

TEST_P(CollectiveChaos, AMemberThatBringsAnotherShape) {
  for (int w = 0; w < kWorkers; ++w) {
    cluster_.Start("worker", w, w == 1 ? Flags({"--odd_step=8"}) : Flags());
  }
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_THAT(Failure(w),
                AllOf(HasSubstr("InvalidArgument"), NamesMember(1), HasSubstr("'gradients/large'"),
                      HasSubstr("instance 1, round 7"), HasSubstr(StrCat("float32[", GetParam().count, "]")),
                      HasSubstr(StrCat("float32[", GetParam().count + 1, "]"))))
        << Said();
    const int acked = cluster_.CountLines("worker", w, "acked");
    EXPECT_LE(acked, 7) << Said();
    EXPECT_GE(acked, w == 1 ? 7 : 6) << Said();  // a slow worker may still have been in the round before
  }
}

TEST_P(CollectiveChaos, AMemberThatLacksACollective) {
  for (int w = 0; w < kWorkers; ++w) {
    cluster_.Start("worker", w, w == 1 ? Flags({"--large_only=1"}) : Flags());
  }
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_THAT(Failure(w), AllOf(HasSubstr("InvalidArgument"), NamesMember(1), AnyOf(NamesMember(0), NamesMember(2)),
                                  HasSubstr("number 1 of its schedule is "), HasSubstr("nothing"),
                                  HasSubstr("'gradients/small' (instance 2), all-reduce SUM of float32[?] by AUTO")))
        << Said();
    EXPECT_EQ(cluster_.CountLines("worker", w, "acked"), 0) << Said();
  }
}

TEST_P(CollectiveChaos, AMemberThatStartsLateIsWaitedFor) {
  for (const int w : {2, 0}) cluster_.Start("worker", w, Flags({"--steps=20"}));
  for (const int w : {2, 0}) ASSERT_TRUE(cluster_.WaitForLines("worker", w, "ready", 1)) << Said();
  cluster_.Start("worker", 1, Flags({"--steps=20"}));
  ExpectProgress(20);
  for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(cluster_.CountLines("worker", w, "failed"), 0) << Said();
}

// The restarted member has lost the state of the group. The others do not go on with it.
TEST_P(CollectiveChaos, AMemberThatIsRestartedIsTold) {
  cluster_.StartAll(Flags());
  ExpectProgress(5);
  cluster_.Kill("worker", 2);
  for (const int w : {0, 1}) EXPECT_THAT(Failure(w), NamesMember(2)) << Said();
  cluster_.Start("worker", 2, Flags());
  EXPECT_THAT(Failure(2), AllOf(NamesMember(2), HasSubstr("group 1, generation 1"))) << Said();
}

// There are two hosts of two processes each, by the names that the processes give, with `devices` members in each
// process. The sums are right. The name of the algorithm shows that the hosts are known.
class CollectiveHosts : public ::testing::TestWithParam<int> {};

TEST_P(CollectiveHosts, ProcessesOfTwoHostsReduceByTheHierarchy) {
  UseTestToken();
  ProcessCluster cluster({{"worker", 4}}, {COLLECTIVE_TASK});
  for (int w = 0; w < 4; ++w) {
    Arguments flags = {"--count=300000", StrCat("--devices=", GetParam()), StrCat("--host=", 1 + w / 2)};
    if (w == 2) flags.emplace_back("--odd_step=21");
    cluster.Start("worker", w, flags);
  }
  for (int w = 0; w < 4; ++w) {
    ASSERT_TRUE(cluster.WaitForLines("worker", w, "failed", 1)) << cluster.Describe();
    EXPECT_THAT(cluster.LastLine("worker", w, "failed"),
                AllOf(HasSubstr("'gradients/large"), HasSubstr("instance 1, round 20"), HasSubstr("float32[300001]"),
                      HasSubstr("by HIERARCHICAL")))
        << cluster.Describe();
    EXPECT_GE(cluster.CountLines("worker", w, "acked"), 19) << cluster.Describe();
  }
}

INSTANTIATE_TEST_SUITE_P(All, CollectiveHosts, ::testing::Values(1, 2),
                         [](const auto& info) { return StrCat(info.param, "_devices"); });

INSTANTIATE_TEST_SUITE_P(All, CollectiveChaos, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return StrCat(info.param); });

}  // namespace
}  // namespace cohort::testing
