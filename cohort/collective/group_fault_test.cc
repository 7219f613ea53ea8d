// Members that bring something else, die, leave, restart or do not come: everybody else is told who, in which
// collective, and nobody waits for ever. tests/chaos has the same with real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/collective/testing/group_harness.h"
#include "cohort/core/testing/throws.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Await;
using testing::Begin;
using ::testing::HasSubstr;
using testing::Layout;
using ::testing::Not;
using testing::Outcome;
using testing::TestCluster;
using testing::TestGroup;

class GroupFaults : public ::testing::TestWithParam<Layout> {
 protected:
  // All algorithms without Gloo, or the one that the layout names.
  static std::vector<Algorithm> Algorithms() {
    if (GetParam().algorithm != Algorithm::kAuto) return {GetParam().algorithm};
    std::vector<Algorithm> ours = testing::AskableAlgorithms();
    std::erase(ours, Algorithm::kGloo);
    return ours;
  }
  Status Join(TestCluster& cluster, int process, const GroupOptions& options,
              std::chrono::milliseconds patience = testing::kPatience) {
    try {
      JoinGroup(cluster.server(process), options, std::chrono::steady_clock::now() + patience);
      return {};
    } catch (...) {
      return Status::FromCurrentException();
    }
  }
  static std::string RankName(int rank) { return StrCat("rank ", rank, " (/job:worker/replica:0/task:"); }
  TestCluster cluster_{GetParam()};
};

Tensor Ones(int64_t count) {
  Tensor ones(DType::kFloat32, Shape{count});
  for (int64_t i = 0; i < count; ++i) ones.data<float>()[i] = 1;
  return ones;
}

TEST_P(GroupFaults, AnotherShapeDtypeOrOperationIsNamed) {
  int64_t key = 0;
  for (const Algorithm algorithm : Algorithms()) {
    for (int odd = 0; odd < GetParam().world; ++odd) {
      for (const int wrong : {0, 1, 2, 3}) {
        GroupOptions options;
        options.key = ++key;
        options.algorithm = algorithm;
        TestGroup group(cluster_, options);
        ASSERT_TRUE(group.joined());
        const auto outcomes = group.Run([&](Communicator& member, Communicator::Done done) {
          const bool differs = member.rank() == odd;
          const CollectiveId id = {41, "gradients/dense"};
          if (differs && wrong == 0) return member.AllReduceAsync(id, Ones(7), ReduceOp::kSum, std::move(done));
          if (differs && wrong == 1) {
            return member.AllReduceAsync(id, Tensor::Zeros(DType::kInt32, Shape{6}), ReduceOp::kSum, std::move(done));
          }
          if (differs && wrong == 2) return member.AllReduceAsync(id, Ones(6), ReduceOp::kMax, std::move(done));
          if (differs && wrong == 3) return member.AllReduceAsync(id, Ones(100'000), ReduceOp::kSum, std::move(done));
          member.AllReduceAsync(id, Ones(6), ReduceOp::kSum, std::move(done));
        });
        const char* brought[] = {"SUM of float32[7]", "SUM of int32[6]", "MAX of float32[6]", "SUM of float32[100000]"};
        for (const Outcome& outcome : outcomes) {
          EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument);
          EXPECT_THAT(outcome.status.message(),
                      AllOf(HasSubstr("'gradients/dense' (instance 41, round 0)"), HasSubstr(brought[wrong]),
                            HasSubstr("SUM of float32[6]"), HasSubstr(RankName(odd))))
              << AlgorithmName(algorithm);
        }
        // The group stays failed.
        const auto later = group.Run([&](Communicator& member, Communicator::Done done) {
          member.BarrierAsync({1, "later"}, std::move(done));
        });
        for (const Outcome& outcome : later) EXPECT_THAT(outcome.status.message(), HasSubstr(brought[wrong]));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(GroupFaults, AnotherKindOrRootIsNamed) {
  GroupOptions options;
  {
    TestGroup group(cluster_, options);
    const auto outcomes = group.Run([&](Communicator& member, Communicator::Done done) {
      member.BroadcastAsync({1, "init"}, Ones(3), member.rank() == 1 ? 1 : 0, std::move(done));
    });
    // All may have had what they waited for before they see what others have sent; then it fails what follows.
    const auto later = group.Run([&](Communicator& member, Communicator::Done done) {
      member.BarrierAsync({2, "later"}, std::move(done));
    });
    int told = 0;
    for (const auto* some : {&outcomes, &later}) {
      for (const Outcome& outcome : *some) {
        if (outcome.status.ok()) continue;
        ++told;
        EXPECT_THAT(outcome.status.message(), AllOf(HasSubstr("from rank 0"), HasSubstr("from rank 1")));
      }
    }
    EXPECT_GT(told, 0);
  }
  options.generation = 2;
  TestGroup group(cluster_, options);
  const auto outcomes = group.Run([&](Communicator& member, Communicator::Done done) {
    if (member.rank() == 0) return member.BarrierAsync({1, "x"}, std::move(done));
    member.AllGatherAsync({1, "x"}, Ones(3), std::move(done));
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.status.message(), AllOf(HasSubstr("barrier"), HasSubstr("all-gather of float32[3]")));
  }
}

TEST_P(GroupFaults, WhatCannotBeReducedIsRefusedWithoutFailingTheGroup) {
  TestGroup group(cluster_, {});
  const auto message = [&](Tensor input, ReduceOp op) {
    auto future = Begin([&](Communicator::Done done) {
      group.members()[0]->AllReduceAsync({9, "bad"}, std::move(input), op, std::move(done));
    });
    const Outcome outcome = Await(future);
    EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument);
    return outcome.status.message();
  };
  EXPECT_THAT(message(Tensor(), ReduceOp::kSum), AllOf(HasSubstr("got no tensor"), HasSubstr("'bad' (instance 9)")));
  EXPECT_THAT(message(Tensor::Scalar("text"), ReduceOp::kSum), HasSubstr("string"));
  EXPECT_THAT(message(Tensor::Scalar(true), ReduceOp::kSum), HasSubstr("bool"));
  auto root = Begin([&](Communicator::Done done) {
    group.members()[0]->BroadcastAsync({8, "b"}, Ones(1), 99, std::move(done));
  });
  EXPECT_THAT(Await(root).status.message(), HasSubstr("got 99"));
  auto rows = Begin([&](Communicator::Done done) {
    group.members()[0]->ReduceScatterAsync({7, "s"}, Ones(GetParam().world + 1), ReduceOp::kSum, std::move(done));
  });
  EXPECT_THAT(Await(rows).status.message(), HasSubstr("share equally"));
  const auto outcomes = group.Run([&](Communicator& member, Communicator::Done done) {
    member.AllReduceAsync({9, "good"}, Ones(1), ReduceOp::kSum, std::move(done));
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
}

TEST_P(GroupFaults, AMemberThatDoesNotCallInTimeIsNamed) {
  for (const Algorithm algorithm : Algorithms()) {
    GroupOptions options;
    options.key = static_cast<int64_t>(algorithm);
    options.algorithm = algorithm;
    options.timeout = std::chrono::milliseconds(100);
    TestGroup group(cluster_, options);
    std::vector<std::future<Outcome>> futures;
    for (const auto& member : group.members()) {
      if (member->rank() == 1) continue;
      futures.push_back(Begin([&](Communicator::Done done) {
        member->AllReduceAsync({3, "loss"}, Ones(50), ReduceOp::kMean, std::move(done));
      }));
    }
    for (auto& future : futures) {
      const Outcome outcome = Await(future);
      EXPECT_EQ(outcome.status.code(), Code::kDeadlineExceeded);
      EXPECT_THAT(outcome.status.message(),
                  AllOf(HasSubstr("'loss' (instance 3, round 0)"), HasSubstr("100 ms"), HasSubstr("waits for rank ")));
    }
  }
}

TEST_P(GroupFaults, AMemberThatDoesNotCallIsNamedAfterTheLimitWithoutProgress) {
  for (const Algorithm algorithm : Algorithms()) {
    GroupOptions options;
    options.key = static_cast<int64_t>(algorithm) + 200;
    options.algorithm = algorithm;
    options.progress_limit = std::chrono::milliseconds(200);
    TestGroup group(cluster_, options);
    std::vector<std::future<Outcome>> futures;
    for (const auto& member : group.members()) {
      if (member->rank() == 1) continue;
      futures.push_back(Begin([&](Communicator::Done done) {
        member->AllReduceAsync({3, "loss"}, Ones(50), ReduceOp::kMean, std::move(done));
      }));
    }
    for (auto& future : futures) {
      const Outcome outcome = Await(future);
      EXPECT_EQ(outcome.status.code(), Code::kDeadlineExceeded);
      EXPECT_THAT(outcome.status.message(),
                  AllOf(HasSubstr("'loss' (instance 3, round 0)"), HasSubstr("no progress for 0.2 s"),
                        HasSubstr("waits for rank "), HasSubstr("    #0 ")));
    }
  }
}

// Nobody fails; the log says who keeps the others.
TEST_P(GroupFaults, AMemberThatIsLateIsToldInTheLog) {
  for (const Algorithm algorithm : Algorithms()) {
    GroupOptions options;
    options.key = static_cast<int64_t>(algorithm) + 100;
    options.algorithm = algorithm;
    options.late_interval = std::chrono::milliseconds(20);
    TestGroup group(cluster_, options);
    const auto call = [&](const std::shared_ptr<Communicator>& member) {
      return Begin([&](Communicator::Done done) { member->BarrierAsync({3, "epoch"}, std::move(done)); });
    };
    std::string log;
    std::vector<std::future<Outcome>> futures;
    const auto deadline = std::chrono::steady_clock::now() + testing::kPatience;
    const std::string who = "waits for " + RankName(0);
    ::testing::internal::CaptureStderr();
    for (const auto& member : group.members()) {
      if (member->rank() != 0) futures.push_back(call(member));
    }
    while (log.find(who) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(options.late_interval);
      log += ::testing::internal::GetCapturedStderr();
      ::testing::internal::CaptureStderr();
    }
    futures.push_back(call(group.members()[0]));
    for (auto& future : futures) EXPECT_TRUE(Await(future).status.ok());
    log += ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, HasSubstr("W [collective] 'epoch' (instance 3, round 0), barrier"));
    EXPECT_THAT(log, HasSubstr(StrCat(" of group ", options.key, ", generation 1 has been under way for at least ")));
    EXPECT_THAT(log, HasSubstr(who));
  }
}

TEST_P(GroupFaults, OneThatGivesUpEndsIt) {
  TestGroup group(cluster_, {});
  std::vector<std::future<Outcome>> futures;
  for (const auto& member : group.members()) {
    if (member->rank() == 2) continue;
    futures.push_back(Begin([&](Communicator::Done done) { member->BarrierAsync({5, "epoch"}, std::move(done)); }));
  }
  group.members()[2]->Abort(Status(Code::kCancelled, "the loss is NaN"));
  for (auto& future : futures) {
    const Outcome outcome = Await(future);
    EXPECT_EQ(outcome.status.code(), Code::kCancelled);
    EXPECT_THAT(outcome.status.message(), AllOf(HasSubstr(RankName(2)), HasSubstr("gives up: the loss is NaN"),
                                                HasSubstr("'epoch' (instance 5, round 0)")));
  }
}

// Only between processes.
class GroupProcessFaults : public GroupFaults {};

TEST_P(GroupProcessFaults, AProcessThatEndsIsNamed) {
  for (const Algorithm algorithm : Algorithms()) {
    TestCluster cluster(GetParam());
    GroupOptions options;
    options.algorithm = algorithm;
    TestGroup group(cluster, options);
    ASSERT_TRUE(group.joined());
    const auto all = [&](Communicator& member, Communicator::Done done) {
      member.AllReduceAsync({1, "w"}, Ones(30), ReduceOp::kSum, std::move(done));
    };
    for (int round = 0; round < 3; ++round) {
      for (const Outcome& outcome : group.Run(all)) ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    }
    std::vector<std::future<Outcome>> futures;
    for (const auto& member : group.members()) {
      if (member->rank() == 1) continue;
      futures.push_back(Begin([&](Communicator::Done done) { all(*member, std::move(done)); }));
    }
    cluster.Stop(1);
    for (auto& future : futures) {
      const Outcome outcome = Await(future);
      EXPECT_EQ(outcome.status.code(), Code::kUnavailable) << outcome.status.ToString();
      EXPECT_THAT(outcome.status.message(), AllOf(HasSubstr("'w' (instance 1, round 3)"), HasSubstr(RankName(1)),
                                                  AnyOf(HasSubstr("is lost"), HasSubstr("has left"))));
    }
  }
}

// Whoever has its result may leave at once; nobody who still works on the same collective is disturbed.
TEST_P(GroupProcessFaults, LeavingAfterTheLastCollectiveDisturbsNobody) {
  for (int64_t key = 1; key <= 20; ++key) {
    GroupOptions options;
    options.key = key;
    TestGroup group(cluster_, options);
    ASSERT_TRUE(group.joined());
    std::vector<std::future<Outcome>> futures;
    for (const auto& member : group.members()) {
      futures.push_back(Begin([&](Communicator::Done done) {
        member->AllReduceAsync({1, "last"}, Ones(key % 2 == 0 ? 200'000 : 10), ReduceOp::kSum, std::move(done));
      }));
    }
    for (size_t i = 0; i < futures.size(); ++i) {
      const Outcome outcome = Await(futures[i]);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
      group.Drop(static_cast<int>(i));
    }
  }
}

// Members 0 and 2 of a group of three wait for member 1 at a barrier. Returns what they are told.
std::vector<Outcome> BarrierOfRanks0And2(TestGroup& group) {
  std::vector<std::future<Outcome>> futures;
  for (const size_t rank : {0, 2}) {
    futures.push_back(Begin([&](Communicator::Done done) {
      group.members()[rank]->BarrierAsync({1, "b"}, std::move(done));
    }));
  }
  std::vector<Outcome> outcomes;
  outcomes.reserve(futures.size());
  for (auto& future : futures) outcomes.push_back(Await(future));
  return outcomes;
}

// A program ends because one of its groups has failed. Members of its other groups may hear that it has left before
// they hear of the failure.
TEST_P(GroupProcessFaults, AProcessThatLeavesTellsWhichFailureCameBefore) {
  TestGroup failing(cluster_, {.key = 2});
  TestGroup healthy(cluster_, {.key = 3});
  ASSERT_TRUE(failing.joined() && healthy.joined());
  ASSERT_TRUE(FailGroups(cluster_.server(1), 2, Status(Code::kInvalidArgument, "a bad shape of 17 columns")));
  healthy.Drop(1);
  for (const Outcome& outcome : BarrierOfRanks0And2(healthy)) {
    EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
    EXPECT_THAT(outcome.status.message(),
                AllOf(HasSubstr("has left group 3, generation 1, after another group of it had"),
                      HasSubstr("InvalidArgument: a bad shape of 17 columns")));
  }
}

// A later generation of a group ends the earlier one. That is no reason to leave another group.
TEST_P(GroupProcessFaults, AProcessThatLeavesDoesNotTellThatAGroupHasFormedAgain) {
  GroupOptions options{.key = 2};
  TestGroup old(cluster_, options);
  TestGroup healthy(cluster_, {.key = 3});
  ASSERT_TRUE(old.joined() && healthy.joined());
  options.generation = 2;
  TestGroup young(cluster_, options);
  ASSERT_TRUE(young.joined());
  healthy.Drop(1);
  for (const Outcome& outcome : BarrierOfRanks0And2(healthy)) {
    EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
    EXPECT_THAT(outcome.status.message(),
                AllOf(HasSubstr("has left group 3, generation 1"), Not(HasSubstr("had failed"))));
  }
}

TEST_P(GroupProcessFaults, WhoWaitsForOneThatHasLeftIsTold) {
  TestGroup group(cluster_, {});
  ASSERT_TRUE(group.joined());
  group.Drop(1);
  const auto begin = [&](size_t rank) {
    return Begin([&](Communicator::Done done) { group.members()[rank]->BarrierAsync({1, "b"}, std::move(done)); });
  };
  std::vector<std::future<Outcome>> futures;
  for (const size_t rank : {0, 2}) futures.push_back(begin(rank));
  for (auto& future : futures) {
    const Outcome outcome = Await(future);
    EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
    EXPECT_THAT(outcome.status.message(), AllOf(HasSubstr("rank 1 ("), HasSubstr("has left group 1, generation 1")));
  }
  // Another thread may hold the group that was left for a moment.
  auto late = begin(1);
  EXPECT_THAT(Await(late).status.code(), ::testing::AnyOf(Code::kFailedPrecondition, Code::kCancelled));
}

TEST_P(GroupProcessFaults, SchedulesThatDifferAreNamedBeforeTheFirstCollective) {
  const auto entry = [](int64_t instance, const std::string& name, const Shape& shape) {
    return ScheduleEntry{
        instance, name, {CallKind::kAllReduce, ReduceOp::kSum, Algorithm::kAuto, 0, DType::kFloat32, shape}};
  };
  const std::vector<ScheduleEntry> usual = {entry(1, "a", Shape{2}), entry(2, "b", Shape{3})};
  const std::vector<std::pair<std::vector<ScheduleEntry>, std::string>> others = {
      {{entry(1, "a", Shape{2})}, "collective number 1 of its schedule is"},
      {{entry(1, "a", Shape{2}), entry(2, "b", Shape{4})}, "float32[4]"},
      {{entry(2, "b", Shape{3}), entry(1, "a", Shape{2})}, "collective number 0 of its schedule is"},
  };
  int64_t key = 0;
  for (const auto& [other, difference] : others) {
    GroupOptions options;
    options.key = ++key;
    options.schedule = usual;
    TestGroup group(cluster_, options, [&, other = other](int process, GroupOptions& own) {
      if (process == 1) own.schedule = other;
    });
    bool named = false;
    for (const Status& error : group.errors()) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_THAT(error.message(), AllOf(HasSubstr("/job:worker/replica:0/task:1"), HasSubstr("does not agree")));
      named |= error.message().find(difference) != std::string::npos;
    }
    EXPECT_TRUE(named) << difference;
  }
  GroupOptions options;
  options.key = ++key;
  options.schedule = usual;
  EXPECT_TRUE(TestGroup(cluster_, options).joined());
}

TEST_P(GroupProcessFaults, AnotherAlgorithmIsNamedBeforeTheFirstCollective) {
  const TestGroup group(cluster_, {}, [&](int process, GroupOptions& own) {
    if (process == 1) own.algorithm = Algorithm::kDirect;
  });
  // By whoever sees it first.
  for (const Status& error : group.errors()) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("/job:worker/replica:0/task:1"), HasSubstr("does not agree"),
                      AnyOf(HasSubstr("its algorithm is DIRECT; here it is "), HasSubstr("; here it is DIRECT"))));
  }
}

TEST_P(GroupProcessFaults, ALaterGenerationEndsAnEarlierOne) {
  GroupOptions options;
  TestGroup old(cluster_, options);
  ASSERT_TRUE(old.joined());
  auto future = Begin([&](Communicator::Done done) { old.members()[0]->BarrierAsync({1, "old"}, std::move(done)); });
  options.generation = 2;
  TestGroup young(cluster_, options);
  ASSERT_TRUE(young.joined());
  const Outcome outcome = Await(future);
  EXPECT_EQ(outcome.status.code(), Code::kAborted);
  EXPECT_THAT(outcome.status.message(), AllOf(HasSubstr("is in generation 2 of group 1"), HasSubstr("'old'")));
  for (const Outcome& now : young.Run([](Communicator&member, Communicator::Done done) {
         member.BarrierAsync({1, "young"}, std::move(done));
       })) {
    EXPECT_TRUE(now.status.ok()) << now.status.ToString();
  }
}

TEST_P(GroupProcessFaults, WhoDoesNotComeIsNamed) {
  GroupOptions options;
  options.members = cluster_.Members();
  try {
    JoinGroup(cluster_.server(0), options, std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
    ADD_FAILURE() << "joined alone";
  } catch (const DeadlineExceededError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("rank 1 (/job:worker/replica:0/task:1)"), HasSubstr("rank 2 ("),
                                HasSubstr("did not join")));
  }
  // Nothing is left of it.
  EXPECT_TRUE(TestGroup(cluster_, options).joined());
}

// Whoever of the others is gone.
TEST_P(GroupProcessFaults, WhoComesWhenTheGroupHasFailedIsTold) {
  for (const int gone : {0, 1}) {
    TestCluster cluster(GetParam());
    GroupOptions options;
    options.members = cluster.Members();
    GroupOptions other = options;
    other.schedule = {{1, "a", {CallKind::kAllReduce, ReduceOp::kSum, Algorithm::kAuto, 0, DType::kFloat32, Shape{}}}};
    Status first;
    std::thread joins_first([&] { first = Join(cluster, 0, options); });
    const Status second = Join(cluster, 1, other);
    joins_first.join();
    EXPECT_EQ(first.code(), Code::kInvalidArgument) << first.ToString();
    EXPECT_EQ(second.code(), Code::kInvalidArgument) << second.ToString();
    cluster.Stop(gone);
    const Status late = Join(cluster, 2, options);
    EXPECT_EQ(late.code(), Code::kInvalidArgument) << late.ToString();
    EXPECT_THAT(late.message(), HasSubstr("/job:worker/replica:0/task:1 does not agree"));
  }
}

// One that was there and is gone is not waited for like one that never came.
TEST_P(GroupProcessFaults, WhoIsGoneBeforeItJoinsIsNamed) {
  GroupOptions options;
  ASSERT_TRUE(TestGroup(cluster_, options).joined());
  cluster_.Stop(1);
  options.members = cluster_.Members();
  options.key = 2;
  const Status first = Join(cluster_, 0, options);
  EXPECT_EQ(first.code(), Code::kUnavailable) << first.ToString();
  EXPECT_THAT(first.message(), AllOf(HasSubstr("group 2, generation 1 cannot be formed; gone: " + RankName(1)),
                                     Not(HasSubstr(RankName(2)))));
  const Status second = Join(cluster_, 2, options);
  EXPECT_EQ(second.code(), Code::kUnavailable) << second.ToString();
  EXPECT_THAT(second.message(), HasSubstr("gone: " + RankName(1)));
}

// A new process begins the program anew, with its first group. It never comes to the later groups of the old one. Each
// of the others must know this, whether it connects to the new process or the new process connects to it.
TEST_P(GroupProcessFaults, WhoWasStartedAgainIsNotWaitedForInAnotherGroup) {
  GroupOptions options;
  TestGroup formed(cluster_, options);
  ASSERT_TRUE(formed.joined());
  cluster_.Stop(1);
  cluster_.Restart(1);
  options.members = cluster_.Members();
  Status anew;
  std::thread begins_anew([&, options] { anew = Join(cluster_, 1, options); });
  options.key = 2;
  for (const int survivor : {2, 0}) {
    const Status status = Join(cluster_, survivor, options);
    EXPECT_EQ(status.code(), Code::kAborted) << status.ToString();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("group 2, generation 1, cannot be formed: /job:worker/replica:0/task:1"),
                      HasSubstr("was started again after group 1, generation 1 had formed with it"),
                      HasSubstr("start this process again, too")));
  }
  // The new process waits until the programs of the others know that their group has failed.
  for (const int survivor : {0, 2}) formed.Drop(survivor);
  begins_anew.join();
  EXPECT_FALSE(anew.ok());  // the others have lost it in this generation
}

// A program that knows of the new process asks for a later generation, or gives up the groups with the old one.
TEST_P(GroupProcessFaults, WhoWasStartedAgainComesToNewGroups) {
  GroupOptions options;
  TestGroup formed(cluster_, options);
  ASSERT_TRUE(formed.joined());
  cluster_.Stop(1);
  cluster_.Restart(1);
  options.generation = 2;
  {
    const TestGroup again(cluster_, options);
    ASSERT_TRUE(again.joined());
    options = GroupOptions{.key = 2};
    ASSERT_TRUE(TestGroup(cluster_, options).joined()) << "generation 2 has formed with the new process";
  }
  for (int process = 0; process < cluster_.processes(); ++process) formed.Drop(process);
  options.key = 3;
  EXPECT_TRUE(TestGroup(cluster_, options).joined());
}

// A later generation is there for members that are started again.
TEST_P(GroupProcessFaults, ALaterGenerationWaitsForWhoIsGone) {
  GroupOptions options;
  ASSERT_TRUE(TestGroup(cluster_, options).joined());
  cluster_.Stop(1);
  options.members = cluster_.Members();
  options.generation = 2;
  const Status status = Join(cluster_, 0, options, std::chrono::seconds(4));
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.ToString();
  EXPECT_THAT(status.message(), AllOf(HasSubstr(RankName(1)), HasSubstr("did not join")));
}

TEST(GroupTest, WrongMembersAreRefused) {
  const auto message = [](const std::vector<std::string>& names) {
    GroupOptions options;
    for (const std::string& name : names) options.members.push_back(DeviceName::Parse(name));
    return MessageOf<InvalidArgumentError>([&] { MakeLocalGroup(options); });
  };
  EXPECT_THAT(message({}), HasSubstr("expected a member of group 1"));
  EXPECT_THAT(message({"/cpu:0", "/cpu:1", "/cpu:0"}), HasSubstr("/device:CPU:0 is a member of group 1 twice"));
}

TEST(GroupTest, GlooIsBuiltOrNamed) {
  TestCluster cluster({"in_process", 2, 1, Algorithm::kGloo});
  const TestGroup group(cluster, {});
  for (const Status& error : group.errors()) {
    EXPECT_EQ(error.code(), IsBuilt(Algorithm::kGloo) ? Code::kOk : Code::kUnimplemented) << error.ToString();
    if (IsBuilt(Algorithm::kGloo)) continue;
    EXPECT_THAT(error.message(), AllOf(HasSubstr("GLOO"), HasSubstr("libgloo-dev")));
  }
}

TEST(GroupTest, ACallAfterTheGroupIsGoneFails) {
  GroupOptions options;
  options.members = {DeviceName::Parse("/cpu:0")};
  auto group = MakeLocalGroup(options);
  const auto member = group->communicator();
  group.reset();
  auto future = Begin([&](Communicator::Done done) { member->BarrierAsync({1, "late"}, std::move(done)); });
  const Outcome outcome = Await(future);
  EXPECT_EQ(outcome.status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(outcome.status.message(), HasSubstr("the group of 'late' is gone"));
}

std::string LayoutName(const ::testing::TestParamInfo<Layout>& info) { return StrCat(info.param); }
// Hosts with a GPU each. They are not real, so NCCL would refuse them on a card.
std::vector<Layout> ByNccl(const std::vector<std::string>& transports) {
  std::vector<Layout> layouts;
  for (const std::string& transport : transports) {
    if (!cuda::TestsRunOnCard()) layouts.push_back({transport, 3, 1, Algorithm::kNccl, 1, "GPU"});
  }
  return layouts;
}
INSTANTIATE_TEST_SUITE_P(
    All, GroupFaults,
    ::testing::ValuesIn(testing::WithGloo({{"local", 3}, {"in_process", 4}, {"grpc", 3}, {"grpc", 4, 2}},
                                          {{"in_process", 4}, {"grpc", 3}, {"grpc", 4, 2}})),
    LayoutName);
INSTANTIATE_TEST_SUITE_P(All, GroupProcessFaults,
                         ::testing::ValuesIn(testing::WithGloo({{"in_process", 3}, {"grpc", 3}},
                                                               {{"in_process", 3}, {"grpc", 3}})),
                         LayoutName);
INSTANTIATE_TEST_SUITE_P(Nccl, GroupFaults, ::testing::ValuesIn(ByNccl({"in_process"})), LayoutName);
INSTANTIATE_TEST_SUITE_P(Nccl, GroupProcessFaults, ::testing::ValuesIn(ByNccl({"in_process", "grpc"})), LayoutName);

}  // namespace
}  // namespace cohort::collective
