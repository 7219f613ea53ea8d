#include "cohort/runtime/plan/arena_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "cohort/core/error.h"

namespace cohort {
namespace {

constexpr size_t kUnit = kArenaAlignment;

size_t RoundedUp(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

// Time by time, independent of MostLiveBytes.
size_t LowerBound(const std::vector<Lifetime>& lifetimes) {
  size_t most = 0;
  for (const Lifetime& at : lifetimes) {  // the most is there when something begins
    size_t live = 0;
    for (const Lifetime& other : lifetimes) {
      if (other.first <= at.first && at.first <= other.last) live += RoundedUp(other.bytes);
    }
    most = std::max(most, live);
  }
  return most;
}

// What every assignment has to keep; returns the total.
size_t Checked(const std::vector<Lifetime>& lifetimes) {
  const ArenaOffsets result = AssignOffsets(lifetimes);
  EXPECT_EQ(result.offsets.size(), lifetimes.size());
  const size_t bound = LowerBound(lifetimes);
  EXPECT_EQ(MostLiveBytes(lifetimes), bound);
  EXPECT_GE(result.total, bound);
  size_t end = 0;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    const size_t begin_i = result.offsets[i];
    const size_t end_i = begin_i + lifetimes[i].bytes;
    EXPECT_EQ(begin_i % kUnit, 0u);
    end = std::max(end, begin_i + RoundedUp(lifetimes[i].bytes));
    for (size_t j = 0; j < i; ++j) {
      const bool meet = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
      const bool share = begin_i < result.offsets[j] + lifetimes[j].bytes && result.offsets[j] < end_i;
      EXPECT_FALSE(meet && share) << i << " and " << j;
    }
  }
  EXPECT_EQ(result.total, end) << "the block is no larger than what lies in it";
  return result.total;
}

TEST(ArenaPlan, NothingNeedsNoBlock) {
  EXPECT_EQ(Checked({}), 0u);
  EXPECT_EQ(Checked({{0, 0, 5}, {0, 2, 3}}), 0u);
}

TEST(ArenaPlan, LaterValuesTakeThePlacesOfEarlierOnes) {
  EXPECT_EQ(Checked({{kUnit, 0, 0}, {kUnit, 1, 1}, {kUnit, 2, 2}}), kUnit);
  EXPECT_EQ(Checked({{kUnit, 0, 1}, {kUnit, 1, 2}, {kUnit, 2, 3}}), 2 * kUnit);
  EXPECT_EQ(Checked({{1, 0, 9}, {65, 0, 9}}), 3 * kUnit);  // rounded up to whole units
}

TEST(ArenaPlan, TwoSmallOnesInThePlaceOfALargeOne) {
  EXPECT_EQ(Checked({{2 * kUnit, 0, 1}, {kUnit, 2, 4}, {kUnit, 3, 4}}), 2 * kUnit);
}

TEST(ArenaPlan, TheSmallestGapIsTaken) {
  // Two gaps are left between long-lived ones, of 2 and of 1 units; what needs 1 must leave the larger one free.
  EXPECT_EQ(
      Checked(
          {{5 * kUnit, 0, 9}, {2 * kUnit, 0, 2}, {4 * kUnit, 0, 9}, {kUnit, 0, 2}, {kUnit, 3, 9}, {2 * kUnit, 4, 9}}),
      12 * kUnit);
}

TEST(ArenaPlan, ALifeThatEndsBeforeItBeginsIsRefused) {
  const std::vector<Lifetime> wrong = {{64, 3, 2}};
  EXPECT_THROW(AssignOffsets(wrong), InvalidArgumentError);
}

// All sets of up to four values with sizes of 1 to 3 units (or a byte less) and lives in four points of time.
TEST(ArenaPlan, AllSmallCases) {
  std::vector<Lifetime> kinds;
  for (const size_t bytes : {kUnit, 2 * kUnit - 1, 3 * kUnit}) {
    for (int32_t first = 0; first < 4; ++first) {
      for (int32_t last = first; last < 4; ++last) kinds.push_back({bytes, first, last});
    }
  }
  int64_t cases = 0;
  int64_t above_bound = 0;
  for (size_t a = 0; a < kinds.size(); ++a) {
    Checked({kinds[a]});
    for (size_t b = a; b < kinds.size(); ++b) {
      ASSERT_EQ(Checked({kinds[a], kinds[b]}), LowerBound({kinds[a], kinds[b]}));
      for (size_t c = b; c < kinds.size(); ++c) {
        for (size_t d = c; d < kinds.size(); ++d) {
          const std::vector<Lifetime> lifetimes = {kinds[d], kinds[b], kinds[a], kinds[c]};
          ++cases;
          above_bound += Checked(lifetimes) > LowerBound(lifetimes) ? 1 : 0;
          ASSERT_FALSE(HasFailure()) << a << " " << b << " " << c << " " << d;
        }
      }
    }
  }
  EXPECT_EQ(cases, 40920);  // multisets of 4 of 30
  EXPECT_EQ(above_bound, 0);
}

TEST(ArenaPlan, RandomCasesComeCloseToTheLowerBound) {
  std::mt19937_64 random(20260);
  double sum = 0;
  constexpr int kCases = 300;
  for (int round = 0; round < kCases; ++round) {
    std::vector<Lifetime> lifetimes(1 + random() % 200);
    const auto times = static_cast<int32_t>(1 + random() % 100);
    for (Lifetime& lifetime : lifetimes) {
      lifetime.bytes = random() % (size_t{1} << (6 + random() % 16));
      lifetime.first = static_cast<int32_t>(random() % static_cast<uint64_t>(times));
      lifetime.last = lifetime.first + static_cast<int32_t>(random() % static_cast<uint64_t>(1 + times / 4));
    }
    const size_t total = Checked(lifetimes);
    const size_t bound = LowerBound(lifetimes);
    ASSERT_LE(static_cast<double>(total), 1.1 * static_cast<double>(bound) + kUnit) << "case " << round;
    sum += bound == 0 ? 1.0 : static_cast<double>(total) / static_cast<double>(bound);
  }
  EXPECT_LE(sum / kCases, 1.003);
}

// What training looks like: each layer's value lives until its gradient is computed, in the opposite order.
TEST(ArenaPlan, ATrainingStepNeedsNoMoreThanItsLowerBound) {
  std::mt19937_64 random(7);
  for (const int32_t layers : {1, 2, 5, 30, 100}) {
    std::vector<Lifetime> lifetimes;
    for (int32_t i = 0; i < layers; ++i) {
      const size_t bytes = kUnit * (1 + random() % 1000);
      lifetimes.push_back({bytes, i, 2 * layers - i});                                     // forward
      lifetimes.push_back({bytes, 2 * layers - i - 1, 2 * layers - i});                    // its gradient
      lifetimes.push_back({kUnit * (1 + random() % 50), 2 * layers - i, 2 * layers - i});  // its filter's
    }
    const size_t total = Checked(lifetimes);
    EXPECT_EQ(total, LowerBound(lifetimes)) << layers;
  }
}

}  // namespace
}  // namespace cohort
