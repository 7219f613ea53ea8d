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

// A case has vectors of one message, or of many. NCCL is the fake one, on a fake card for each worker.
struct Case {
  int64_t count;
  std::string library = "";  // "gloo", "nccl"
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.count << "_elements" << (one.library.empty() ? "" : "_by_") << one.library;
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {{1000}, {1'000'000}};
  if (collective::IsBuilt(collective::Algorithm::kGloo))
    cases.insert(cases.end(), {{1000, "gloo"}, {1'000'000, "gloo"}});
  cases.insert(cases.end(), {{1000, "nccl"}, {1'000'000, "nccl"}});
  return cases;
}

// The workers. Their processes end with it.
class CollectiveWorkers {
 protected:
  explicit CollectiveWorkers(const std::string& program) : cluster_({{"worker", kWorkers}}, {program}) {
    UseTestToken();
    setenv("COHORT_FAKE_CARDS", StrCat(kWorkers).c_str(), 1);  // for all processes that the test starts
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
  static Arguments FlagsOf(const Case& one, Arguments more) {
    more.push_back(StrCat("--count=", one.count));
    if (one.library == "gloo") more.emplace_back("--gloo=1");
    if (one.library == "nccl") more.push_back(StrCat("--gpus=", kWorkers));
    more.push_back(StrCat("--silence_ms=", ServerOptions().silence_limit.count()));  // the default
    return more;
  }
  static auto NamesMember(int worker) {
    return AllOf(HasSubstr(StrCat("rank ", worker)), HasSubstr(ProcessCluster::FullName("worker", worker)));
  }
  static auto NamesCollective() {
    return AnyOf(HasSubstr("'gradients/large' (instance 1"), HasSubstr("'gradients/small' (instance 2"));
  }

  ProcessCluster cluster_;
};

class CollectiveChaos : public CollectiveWorkers, public ::testing::TestWithParam<Case> {
 protected:
  CollectiveChaos()
      : CollectiveWorkers(GetParam().library == "nccl" ? COLLECTIVE_TASK_ON_FAKE_CARDS : COLLECTIVE_TASK) {}
  static Arguments Flags(Arguments more = {}) { return FlagsOf(GetParam(), std::move(more)); }
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
  // If it was inside of NCCL, the others have asked it how far it is.
  const auto silent = AllOf(HasSubstr("Unavailable"), HasSubstr("no byte for "));
  const auto does_not_answer = AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("does not answer"));
  const ::testing::Matcher<std::string> seen =
      GetParam().library == "nccl" ? ::testing::Matcher<std::string>(AnyOf(silent, does_not_answer)) : silent;
  for (const int w : {0, 2}) {
    EXPECT_THAT(Failure(w), AllOf(seen, NamesMember(1), NamesCollective(), HasSubstr("round "))) << Said();
  }
  cluster_.Thaw("worker", 1);
  Failure(1);
}

TEST_P(CollectiveChaos, ACollectivesOwnDeadlineComesBeforeTheSilenceLimit) {
  cluster_.StartAll(Flags({"--timeout_ms=1000"}));
  ExpectProgress(5);
  cluster_.Freeze("worker", 2);
  // If all members had begun the collective before the freeze, NCCL has it, and does not say for whom it waits.
  const auto waits = AnyOf(HasSubstr("waits for rank "), HasSubstr("is in NCCL's hands"));
  for (const int w : {0, 1}) {
    EXPECT_THAT(Failure(w), AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("1000 ms"), NamesCollective(),
                                  HasSubstr("round "), waits))
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

// Faults while a member is inside of NCCL. Process 0 has the hub of the fake library.
class NcclChaos : public CollectiveWorkers, public ::testing::Test {
 protected:
  static constexpr int kVictim = 1;
  NcclChaos() : CollectiveWorkers(COLLECTIVE_TASK_ON_FAKE_CARDS) {}

  // Starts the workers. `faults` has what goes wrong inside of NCCL (process_nccl.h), by worker.
  void Start(const std::map<int, std::string>& faults, const Arguments& more = {}, int cards = kWorkers) {
    for (int w = 0; w < kWorkers; ++w) {
      ProcessCluster::Surroundings surroundings;
      surroundings.environment.push_back(StrCat("COHORT_FAKE_CARDS=", cards));
      if (const auto found = faults.find(w); found != faults.end()) {
        surroundings.environment.push_back("COHORT_FAKE_NCCL_FAULT=" + found->second);
      }
      cluster_.Start("worker", w, FlagsOf({1000, "nccl"}, more), surroundings);
    }
  }
  // Expects that all workers train, and that each says `why` once.
  void ExpectWithoutNccl(const ::testing::Matcher<std::string>& why) {
    for (int w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(cluster_.task("worker", w).Wait(), 0) << Said();
      const std::string err = cluster_.task("worker", w).err();
      EXPECT_THAT(err, why);
      const std::string outcome = "go through host memory";
      const size_t first = err.find(outcome);
      ASSERT_NE(first, std::string::npos);
      EXPECT_EQ(err.find(outcome, first + 1), std::string::npos) << err;
    }
  }
  void AwaitHang(int worker) { ASSERT_TRUE(cluster_.WaitForLines("worker", worker, "nccl hangs", 1)) << Said(); }
  // The last line of a process that could not stop NCCL.
  static auto SaysWhyItEnds() { return HasSubstr("expected that NCCL's communicators are aborted within 5 s"); }
};

TEST_F(NcclChaos, AMemberThatIsKilledInsideACollective) {
  Start({{kVictim, "kernel:7"}});
  AwaitHang(kVictim);
  cluster_.Kill("worker", kVictim);
  for (const int w : {0, 2}) {
    EXPECT_THAT(Failure(w), AllOf(HasSubstr("Unavailable"), NamesMember(kVictim), NamesCollective())) << Said();
  }
}

// It does not answer, which is noticed before it has been silent for too long.
TEST_F(NcclChaos, AMemberThatIsFrozenInsideACollective) {
  Start({{kVictim, "kernel:7"}});
  AwaitHang(kVictim);
  cluster_.Freeze("worker", kVictim);
  for (const int w : {0, 2}) {
    EXPECT_THAT(Failure(w), AllOf(NamesMember(kVictim), NamesCollective(),
                                  AnyOf(HasSubstr("does not answer"), HasSubstr("no byte for "))))
        << Said();
  }
  cluster_.Thaw("worker", kVictim);
}

// The processes see one card, as on a machine with one.
TEST_F(NcclChaos, ProcessesOnOneCardReduceThroughTheHost) {
  Start({}, {"--steps=5"}, /*cards=*/1);
  ExpectWithoutNccl(AllOf(HasSubstr("share a physical device"), HasSubstr("which NCCL refuses")));
}

TEST_F(NcclChaos, AutoDoesWithoutAnNcclThatOneMemberLacks) {
  Start({{kVictim, "absent:1"}}, {"--steps=5"});
  ExpectWithoutNccl(AllOf(NamesMember(kVictim), HasSubstr("NCCL cannot be used at rank 1"),
                          HasSubstr("/no/folder/of/nccl/libnccl-of-nobody.so.2")));
}

TEST_F(NcclChaos, AnNcclThatWasChosenByNameAndIsAbsentIsAnError) {
  Start({{kVictim, "absent:1"}}, {"--nccl=1"});
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_THAT(Failure(w),
                AllOf(NamesMember(kVictim), HasSubstr("NCCL cannot be used at rank 1"),
                      HasSubstr("/no/folder/of/nccl/libnccl-of-nobody.so.2"), HasSubstr("AUTO does not need it")))
        << Said();
  }
}

TEST_F(NcclChaos, AMemberThatCannotConnect) {
  Start({{kVictim, "init:1"}});
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_THAT(Failure(w), AllOf(NamesMember(kVictim), HasSubstr("invalid usage (fake)"))) << Said();
  }
}

// The thread that is inside of the call cannot be stopped. So its process ends; the others go on.
TEST_F(NcclChaos, AMemberWhoseCallDoesNotReturnEnds) {
  Start({{kVictim, "call:7"}});
  AwaitHang(kVictim);
  for (const int w : {0, 2}) {
    EXPECT_THAT(Failure(w), AllOf(NamesMember(kVictim), NamesCollective(), HasSubstr("is in a call of NCCL")))
        << Said();
  }
  EXPECT_EQ(cluster_.task("worker", kVictim).Wait(), 1) << Said();
  EXPECT_THAT(cluster_.task("worker", kVictim).err(), AllOf(SaysWhyItEnds(), NamesMember(kVictim)));
}

TEST_F(NcclChaos, AMemberWhoseAbortDoesNotReturnEndsWithTheSuspectsName) {
  Start({{0, "abort:7"}});
  AwaitHang(0);
  cluster_.Kill("worker", kVictim);
  EXPECT_THAT(Failure(2), AllOf(HasSubstr("Unavailable"), NamesMember(kVictim), NamesCollective())) << Said();
  EXPECT_EQ(cluster_.task("worker", 0).Wait(), 1) << Said();
  EXPECT_THAT(cluster_.task("worker", 0).err(), AllOf(SaysWhyItEnds(), NamesMember(kVictim)));
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
