#include "tools/cohort/core_division.h"

#include <gtest/gtest.h>

namespace cohort::tools {
namespace {

TEST(DivideCoresTest, ComputingTasksShareTheCores) {
  for (const auto& [cores, compute, ps, threads, shared] :
       std::vector<std::tuple<int, int, int, int, bool>>{{8, 1, 0, 8, false},
                                                         {8, 2, 0, 4, false},
                                                         {8, 3, 2, 2, false},
                                                         {8, 2, 2, 4, true},
                                                         {2, 2, 2, 1, true},
                                                         {2, 5, 0, 1, true},
                                                         {1, 1, 0, 1, false},
                                                         {4, 0, 2, 4, false},
                                                         {1, 0, 2, 1, true}}) {
    const CoreDivision division = DivideCores(cores, compute, ps, std::nullopt);
    EXPECT_EQ(division.threads_per_task, threads) << cores << " cores, " << compute << " tasks, " << ps << " ps";
    EXPECT_EQ(division.threads_per_ps, 1);
    EXPECT_EQ(division.shared_cores, shared) << cores << " cores, " << compute << " tasks, " << ps << " ps";
  }
}

TEST(DivideCoresTest, NeverMoreThreadsThanCoresWhereEachTaskHasOne) {
  for (int cores = 1; cores <= 64; ++cores) {
    for (int tasks = 1; tasks <= 70; ++tasks) {
      const CoreDivision division = DivideCores(cores, tasks, 0, std::nullopt);
      ASSERT_GE(division.threads_per_task, 1);
      ASSERT_EQ(division.shared_cores, tasks > cores);
    }
  }
}

TEST(DivideCoresTest, AFixedNumberIsForEveryTask) {
  const CoreDivision division = DivideCores(8, 2, 1, 3);
  EXPECT_EQ(division.threads_per_task, 3);
  EXPECT_EQ(division.threads_per_ps, 3);
  EXPECT_TRUE(division.shared_cores);
  EXPECT_FALSE(DivideCores(9, 2, 1, 3).shared_cores);
}

TEST(CoresOfQuotaTest, ReadsTheGroupsFile) {
  EXPECT_EQ(CoresOfQuota("200000 100000"), 2);
  EXPECT_EQ(CoresOfQuota("200000 100000\n"), 2);
  EXPECT_EQ(CoresOfQuota("150000 100000"), 2);
  EXPECT_EQ(CoresOfQuota("1000 100000"), 1);
  for (const char* none : {"max 100000", "", "max", "100000", "100000 ", "100000 0", "-1 100000", "0 100000"}) {
    EXPECT_EQ(CoresOfQuota(none), std::nullopt) << none;
  }
}

TEST(AvailableCoresTest, ThereIsOne) { EXPECT_GE(AvailableCores(), 1); }

}  // namespace
}  // namespace cohort::tools
