#include "cohort/cluster/steps/session_work.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace cohort {
namespace {

TEST(SessionWorkTest, ASessionsWorkRunsInOrder) {
  constexpr int kEach = 500;
  std::vector<std::vector<int>> ran(7);
  {
    SessionWork work;
    for (int i = 0; i < kEach; ++i) {
      for (size_t s = 0; s < ran.size(); ++s) work.Schedule(s, [&ran, s, i] { ran[s].push_back(i); });
    }
  }
  for (const std::vector<int>& of_one : ran) {
    ASSERT_EQ(of_one.size(), static_cast<size_t>(kEach));  // the end waits for all of it
    for (int i = 0; i < kEach; ++i) ASSERT_EQ(of_one[static_cast<size_t>(i)], i);
  }
}

TEST(SessionWorkTest, AStuckSessionHoldsUpNobodyElse) {
  Mutex mu;
  CondVar changed;
  bool other_ran = false;
  bool after_ran = false;
  {
    SessionWork work;
    work.Schedule(1, [&] {
      MutexLock lock(mu);
      while (!other_ran) changed.Wait(mu);
    });
    work.Schedule(1, [&] { after_ran = other_ran; });
    work.Schedule(2, [&] {
      MutexLock lock(mu);
      other_ran = true;
      changed.NotifyAll();
    });
  }
  EXPECT_TRUE(after_ran);
}

}  // namespace
}  // namespace cohort
