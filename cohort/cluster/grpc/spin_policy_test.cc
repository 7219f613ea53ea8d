#include "cohort/cluster/grpc/spin_policy.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

int WaitsUntilSpin(SpinPolicy& policy) {
  int waits = 0;
  while (!policy.ShouldSpin()) ++waits;
  return waits;
}

TEST(SpinPolicyTest, SpinsAsLongAsItPays) {
  SpinPolicy policy;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(policy.ShouldSpin());
    policy.Hit();
  }
}

TEST(SpinPolicyTest, MissesMakeItRareAndOneHitUsualAgain) {
  SpinPolicy policy;
  for (const int expected : {0, 1, 3, 7, 15, 31, 63, 127, 127}) {
    EXPECT_EQ(WaitsUntilSpin(policy), expected);
    policy.Miss();
  }
  EXPECT_EQ(WaitsUntilSpin(policy), 127);
  policy.Hit();
  EXPECT_EQ(WaitsUntilSpin(policy), 0);
}

TEST(SpinPolicyTest, GivesWayWhereTheCoreIsWanted) {
  SpinPolicy policy;
  EXPECT_TRUE(policy.ShouldSpin());
  policy.Crowded();
  EXPECT_EQ(WaitsUntilSpin(policy), SpinPolicy::kMostSkipped);
}

}  // namespace
}  // namespace cohort
