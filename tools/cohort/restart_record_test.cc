#include "tools/cohort/restart_record.h"

#include <gtest/gtest.h>

namespace cohort::tools {
namespace {

using Seconds = RestartRecord::Seconds;

RestartRecord::Clock::time_point At(double seconds) {
  return RestartRecord::Clock::time_point() + std::chrono::hours(1) +
         std::chrono::duration_cast<RestartRecord::Clock::duration>(Seconds(seconds));
}

TEST(RestartRecordTest, PausesDoubleUpToTenSeconds) {
  RestartRecord record(Seconds(600));
  double time = 0;
  for (const double pause : {0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0}) {
    EXPECT_DOUBLE_EQ(record.Add(At(time), true).count(), pause) << "after " << time << " s";
    time += 20;
  }
}

TEST(RestartRecordTest, FailuresBeforeTheWindowAreForgotten) {
  RestartRecord record(Seconds(60));
  EXPECT_DOUBLE_EQ(record.Add(At(0), true).count(), 0.1);
  EXPECT_DOUBLE_EQ(record.Add(At(59), true).count(), 0.2);
  EXPECT_EQ(record.Counted(At(60)), 2);
  EXPECT_EQ(record.Counted(At(61)), 1);
  EXPECT_DOUBLE_EQ(record.Add(At(61), true).count(), 0.2) << "only the one of second 59 is before it";
  EXPECT_EQ(record.Counted(At(200)), 0);
  EXPECT_DOUBLE_EQ(record.Add(At(200), true).count(), 0.1);
}

TEST(RestartRecordTest, AFailureThatFollowsFromAnotherTaskMakesThePauseLongerButDoesNotCount) {
  RestartRecord record(Seconds(600));
  EXPECT_DOUBLE_EQ(record.Add(At(0), false).count(), 0.1);
  EXPECT_DOUBLE_EQ(record.Add(At(1), false).count(), 0.2);
  EXPECT_EQ(record.Counted(At(1)), 0);
  EXPECT_FALSE(record.HasCountedSince(At(0)));
  EXPECT_DOUBLE_EQ(record.Add(At(2), true).count(), 0.4);
  EXPECT_EQ(record.Counted(At(2)), 1);
  EXPECT_TRUE(record.HasCountedSince(At(2)));
  EXPECT_FALSE(record.HasCountedSince(At(3)));
}

}  // namespace
}  // namespace cohort::tools
