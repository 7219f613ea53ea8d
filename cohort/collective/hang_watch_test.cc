// The programs of members that hang in their own code. The test is the program of all members of its cluster, which is
// in one process. progress_test has the same with real processes.
#include "cohort/collective/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cohort/collective/testing/group_harness.h"
#include "cohort/runtime/program_activity.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using testing::Await;
using testing::Begin;
using ::testing::HasSubstr;
using testing::Layout;
using testing::Outcome;
using testing::TestCluster;
using testing::TestGroup;

constexpr std::chrono::milliseconds kLimit{200};

class HangWatchTest : public ::testing::Test {
 protected:
  static GroupOptions Options() {
    GroupOptions options;
    options.progress_limit = kLimit;
    return options;
  }
  // Waits until the process has a HungThread, or has none.
  static bool AwaitHang(bool hangs) {
    const auto end = std::chrono::steady_clock::now() + testing::kPatience;
    while (HungThread::Any() != hangs) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  // Returns whether the process gets a HungThread within several limits.
  static bool HangsSoon() {
    const auto end = std::chrono::steady_clock::now() + 5 * kLimit;
    while (std::chrono::steady_clock::now() < end) {
      if (HungThread::Any()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  // Asks for the status until the group has failed.
  static void AwaitFailure(const Group& group) {
    const auto end = std::chrono::steady_clock::now() + testing::kPatience;
    while (group.status().ok() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_THAT(group.status().message(), HasSubstr("a bad card"));
  }
  // Fails the group. Its member on server 2 knows of the failure.
  void Fail() { ASSERT_TRUE(FailGroups(cluster_.server(2), 1, Status(Code::kInternal, "a bad card"))); }

  TestCluster cluster_{Layout{"in_process", 3}};
};

TEST_F(HangWatchTest, AProgramThatCallsNothingAfterAFailureHangs) {
  TestGroup group(cluster_, Options());
  ASSERT_TRUE(group.joined());
  Fail();
  ASSERT_TRUE(AwaitHang(true));
  EXPECT_THAT(HungThread::DescribeAll(), HasSubstr("since group 1, generation 1 has failed"));
  // Its next call tells it of the failure, so it does not hang. It is not judged again.
  for (const auto& member : group.members()) {
    auto future = Begin([&](Communicator::Done done) { member->BarrierAsync({1, "b"}, std::move(done)); });
    EXPECT_THAT(Await(future).status.message(), HasSubstr("a bad card"));
  }
  EXPECT_TRUE(AwaitHang(false));
  EXPECT_FALSE(HangsSoon());
}

TEST_F(HangWatchTest, AProgramThatAsksForTheStatusIsNotJudged) {
  TestGroup group(cluster_, Options());
  ASSERT_TRUE(group.joined());
  Fail();
  for (const int process : {0, 1, 2}) AwaitFailure(group.group(process));
  EXPECT_FALSE(HangsSoon());
}

TEST_F(HangWatchTest, AProgramWhoseCallFailsIsNotJudged) {
  TestGroup group(cluster_, Options());
  ASSERT_TRUE(group.joined());
  std::vector<std::future<Outcome>> futures;
  for (const size_t rank : {0, 1}) {
    futures.push_back(Begin([&](Communicator::Done done) {
      group.members()[rank]->BarrierAsync({1, "b"}, std::move(done));
    }));
  }
  Fail();
  for (auto& future : futures) EXPECT_THAT(Await(future).status.message(), HasSubstr("a bad card"));
  EXPECT_FALSE(HangsSoon());
}

TEST_F(HangWatchTest, AProgramThatHasLeftIsNotJudged) {
  TestGroup group(cluster_, Options());
  ASSERT_TRUE(group.joined());
  Fail();
  for (const int process : {0, 1, 2}) group.Drop(process);
  EXPECT_FALSE(HangsSoon());
}

TEST_F(HangWatchTest, AProgramInACallIsNotJudged) {
  TestGroup group(cluster_, Options());
  ASSERT_TRUE(group.joined());
  {
    const ProgramActivity::Call call;
    Fail();
    EXPECT_FALSE(HangsSoon());
  }
  EXPECT_TRUE(AwaitHang(true));
}

TEST_F(HangWatchTest, AProgramForWhichNobodyWaitsIsNotJudged) {
  TestGroup group(cluster_, Options());
  ASSERT_TRUE(group.joined());
  {
    const ProgramActivity::Call call;  // nobody is judged meanwhile
    cluster_.Stop(1);
    Fail();
    cluster_.Stop(2);
  }
  EXPECT_FALSE(HangsSoon());
  AwaitFailure(group.group(0));
}

TEST_F(HangWatchTest, WithoutALimitNobodyIsJudged) {
  GroupOptions options = Options();
  options.progress_limit = std::chrono::milliseconds(0);
  TestGroup group(cluster_, options);
  ASSERT_TRUE(group.joined());
  Fail();
  EXPECT_FALSE(HangsSoon());
}

TEST_F(HangWatchTest, AMemberThatHangsBeforeItJoinsIsNamed) {
  GroupOptions options = Options();
  options.members = cluster_.Members();
  Status status;
  std::thread joins([&] {
    try {
      JoinGroup(cluster_.server(0), options, std::chrono::steady_clock::now() + testing::kPatience);
    } catch (...) {
      status = Status::FromCurrentException();
    }
  });
  // A member that only comes late is waited for. Its process says that it hangs.
  std::this_thread::sleep_for(3 * kLimit);
  {
    const HungThread hung("a thread of the test hangs");
    joins.join();
  }
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("group 1, generation 1 cannot be formed: rank 1 (/job:worker/replica:0/task:1)"),
                    HasSubstr("The limit without progress is 0.2 s"), HasSubstr("hangs: a thread of the test hangs")));
}

// A process that was started again waits until the programs of the others know that their group has failed.
TEST_F(HangWatchTest, AProcessThatJoinsAgainGetsItsAnswerWhenTheProgramKnows) {
  GroupOptions options;
  options.progress_limit = std::chrono::milliseconds(0);
  TestGroup group(cluster_, options);
  ASSERT_TRUE(group.joined());
  ASSERT_TRUE(FailGroups(cluster_.server(1), 1, Status(Code::kInternal, "a bad card")));
  cluster_.Stop(1);
  cluster_.Restart(1);
  options.members = cluster_.Members();
  std::atomic<bool> joined{false};
  Status status;
  std::thread joins([&] {
    try {
      JoinGroup(cluster_.server(1), options, std::chrono::steady_clock::now() + testing::kPatience);
    } catch (...) {
      status = Status::FromCurrentException();
    }
    joined = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_FALSE(joined);
  EXPECT_THAT(group.members()[0]->status().message(), HasSubstr("a bad card"));  // now it knows
  joins.join();
  EXPECT_THAT(status.message(), HasSubstr("a bad card"));
}

}  // namespace
}  // namespace cohort::collective
