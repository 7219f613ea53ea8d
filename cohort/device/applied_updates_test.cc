#include "cohort/device/applied_updates.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

TEST(AppliedUpdatesTest, AnUpdateIsMadeByOneAttempt) {
  AppliedUpdates updates;
  EXPECT_TRUE(updates.Begin({7, 1, 1}, "w"));
  EXPECT_FALSE(updates.Begin({7, 1, 1}, "w"));
  EXPECT_TRUE(updates.Begin({7, 1, 1}, "b"));
  EXPECT_TRUE(updates.Begin({7, 2, 1}, "w"));
  EXPECT_TRUE(updates.Begin({8, 1, 1}, "w"));  // of another coordinator
  EXPECT_EQ(updates.size(), 3u);
}

TEST(AppliedUpdatesTest, AnUpdateThatFailedMayBeMadeAgain) {
  AppliedUpdates updates;
  EXPECT_TRUE(updates.Begin({7, 1, 1}, "w"));
  updates.Undo({7, 1, 1}, "w");
  EXPECT_EQ(updates.size(), 0u);
  EXPECT_TRUE(updates.Begin({7, 1, 1}, "w"));
  updates.Undo({9, 1, 1}, "w");  // nothing is known of it
  EXPECT_FALSE(updates.Begin({7, 1, 1}, "w"));
}

TEST(AppliedUpdatesTest, ClosuresThatHaveEndedAreForgottenAndMakeNoUpdates) {
  AppliedUpdates updates;
  for (int64_t number = 1; number <= 5; ++number) EXPECT_TRUE(updates.Begin({7, number, 1}, "w"));
  EXPECT_TRUE(updates.Begin({7, 6, 5}, "w"));
  EXPECT_EQ(updates.size(), 2u);
  EXPECT_FALSE(updates.Begin({7, 3, 3}, "w"));  // a late attempt
  EXPECT_FALSE(updates.Begin({7, 4, 1}, "b"));
  EXPECT_FALSE(updates.Begin({7, 5, 1}, "w"));
  EXPECT_EQ(updates.size(), 2u);
}

TEST(AppliedUpdatesTest, CoordinatorsThatWereNotSeenForLongAreForgotten) {
  AppliedUpdates updates;
  for (uint64_t coordinator = 1; coordinator <= AppliedUpdates::kCoordinators; ++coordinator) {
    EXPECT_TRUE(updates.Begin({coordinator, 1, 1}, "w"));
  }
  EXPECT_FALSE(updates.Begin({1, 1, 1}, "w"));  // used again
  EXPECT_TRUE(updates.Begin({AppliedUpdates::kCoordinators + 1, 1, 1}, "w"));
  EXPECT_EQ(updates.size(), AppliedUpdates::kCoordinators);
  EXPECT_FALSE(updates.Begin({1, 1, 1}, "w"));
  EXPECT_TRUE(updates.Begin({2, 1, 1}, "w"));
}

}  // namespace
}  // namespace cohort
