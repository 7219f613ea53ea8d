#include "cohort/distribute/strategies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing/throws.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/registration.h"

namespace cohort::distribute {
namespace {

TEST(StrategyTest, Counts) {
  const StrategyPtr strategy = MirroredOnCpus(3);
  EXPECT_EQ(strategy->num_replicas_in_sync(), 3);
}

}  // namespace
}  // namespace cohort::distribute
