#include "cohort/collective/group_failures.h"

#include <gtest/gtest.h>

namespace cohort::collective {
namespace {

Status Lost(const std::string& task) { return Status(Code::kUnavailable, task + " is lost"); }

TEST(GroupFailuresTest, AGroupThatHasFormedAgainIsNotTheLatestFailure) {
  GroupFailures failures;
  failures.Add({7, 1}, Lost("worker 3"));
  failures.Add({8, 1}, Status(Code::kAborted, "generation 1 is over"));
  EXPECT_EQ(failures.Latest().message(), "generation 1 is over");
  failures.OnJoined({8, 2});
  EXPECT_EQ(failures.Latest().message(), "worker 3 is lost");
  EXPECT_EQ(failures.Find({8, 1}).message(), "generation 1 is over");
  EXPECT_TRUE(failures.Find({8, 2}).ok());
  failures.OnJoined({7, 1});
  EXPECT_TRUE(failures.Latest().ok());
  EXPECT_TRUE(failures.Find({7, 1}).ok());
}

TEST(GroupFailuresTest, ALaterGenerationAnswersForEarlierOnes) {
  GroupFailures failures;
  failures.Add({7, 1}, Lost("worker 3"));
  failures.Add({7, 3}, Lost("worker 4"));
  for (const int64_t generation : {1, 2, 3}) {
    EXPECT_EQ(failures.Find({7, generation}).message(), "worker 4 is lost") << generation;
  }
  EXPECT_TRUE(failures.Find({7, 4}).ok());
  EXPECT_TRUE(failures.Find({6, 1}).ok());
}

TEST(GroupFailuresTest, TheOldestFailureIsForgottenFirst) {
  GroupFailures failures;
  const auto most = static_cast<int64_t>(GroupFailures::kMost);
  for (int64_t key = most; key >= 0; --key) failures.Add({key, 1}, Lost(std::to_string(key)));
  EXPECT_EQ(failures.Latest().message(), "0 is lost");
  EXPECT_EQ(failures.Find({0, 1}).message(), "0 is lost");
  EXPECT_EQ(failures.Find({most - 1, 1}).message(), std::to_string(most - 1) + " is lost");
  EXPECT_TRUE(failures.Find({most, 1}).ok());
}

}  // namespace
}  // namespace cohort::collective
