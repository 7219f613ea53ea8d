#include "cohort/checkpoint/checkpoint_rotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CheckpointRotationTest, KeepsTheNewest) {
  CheckpointRotation rotation(2, 10000, 0);
  EXPECT_THAT(rotation.Add("a", 1), IsEmpty());
  EXPECT_THAT(rotation.Add("b", 2), IsEmpty());
  EXPECT_THAT(rotation.Add("c", 3), ElementsAre("a"));
  EXPECT_THAT(rotation.Add("d", 4), ElementsAre("b"));
  EXPECT_THAT(rotation.StatePaths(), ElementsAre("c", "d"));
}

TEST(CheckpointRotationTest, SavingAgainMovesToTheEnd) {
  CheckpointRotation rotation(2, 10000, 0);
  rotation.Add("a", 1);
  rotation.Add("b", 2);
  EXPECT_THAT(rotation.Add("a", 3), IsEmpty());
  EXPECT_THAT(rotation.StatePaths(), ElementsAre("b", "a"));
  EXPECT_THAT(rotation.Add("c", 4), ElementsAre("b"));
}

TEST(CheckpointRotationTest, ZeroKeepsAllAndListsTheLast) {
  CheckpointRotation rotation(0, 10000, 0);
  for (const char* prefix : {"a", "b", "c"}) EXPECT_THAT(rotation.Add(prefix, 1), IsEmpty());
  EXPECT_THAT(rotation.StatePaths(), ElementsAre("c"));
}

TEST(CheckpointRotationTest, OneInEveryNHoursStays) {
  CheckpointRotation rotation(1, 2, 0);  // two hours: 7200 s
  EXPECT_THAT(rotation.Add("h0", 0), IsEmpty());
  EXPECT_THAT(rotation.Add("h1", 3600), ElementsAre("h0"));
  EXPECT_THAT(rotation.Add("h2", 7200), ElementsAre("h1"));
  EXPECT_THAT(rotation.Add("h3", 10800), ElementsAre("h2"));  // not later than 7200
  EXPECT_THAT(rotation.Add("h4", 14400), IsEmpty());          // h3 stays; next after 14400
  EXPECT_THAT(rotation.Add("h5", 18000), ElementsAre("h4"));
  EXPECT_THAT(rotation.Add("h6", 21600), IsEmpty());  // h5 stays
  EXPECT_THAT(rotation.StatePaths(), ElementsAre("h6"));
}

TEST(CheckpointRotationTest, RecoveredOnesCount) {
  CheckpointRotation rotation(2, 10000, 100);
  rotation.Recover({{"a", 1}, {"b", 2}, {"c", 3}});
  EXPECT_THAT(rotation.Add("d", 101), ElementsAre("a", "b"));
  EXPECT_THAT(rotation.StatePaths(), ElementsAre("c", "d"));
}

TEST(CheckpointRotationTest, NegativeArguments) {
  EXPECT_THROW(CheckpointRotation(-1, 1, 0), InvalidArgumentError);
  EXPECT_THROW(CheckpointRotation(1, -1, 0), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort
