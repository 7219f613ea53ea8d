// The arena below an executor: "nodes" ask for memory and hold buffers as a test says.
#include "cohort/runtime/plan/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "cohort/core/error.h"

namespace cohort {
namespace {

constexpr size_t kSize = 64 * 1024;

void Mark(const BufferPtr& buffer, int value) { std::memset(buffer->data(), value, buffer->size()); }
bool HasMark(const BufferPtr& buffer, int value) {
  const auto* bytes = static_cast<const unsigned char*>(buffer->data());
  // Each byte is the one before it. ThreadSanitizer sees one call, which is much faster than a loop.
  return buffer->size() == 0 || (bytes[0] == value % 256 && std::memcmp(bytes, bytes + 1, buffer->size() - 1) == 0);
}
int64_t BytesInUse() { return HostAllocatorStats().bytes_in_use; }

class ArenaTest : public ::testing::Test {
 protected:
  static constexpr int32_t kNodes = 16;
  ArenaTest() { Restart(); }

  void Restart(std::vector<bool> leaves = std::vector<bool>(kNodes, false)) {
    memory_.reset();
    planner_ = std::make_unique<ArenaPlanner>(std::move(leaves));
    memory_ = std::make_unique<StepAllocator>(*planner_);
  }
  BufferPtr Get(int32_t node, size_t bytes) {
    memory_->BeginNode(node);
    return memory_->Allocate(bytes);
  }
  // Each node reads what the one before it made: two are there at a time.
  std::vector<const void*> RunLine(int nodes = 6, size_t bytes = kSize) {
    std::vector<const void*> at;
    BufferPtr before;
    for (int32_t i = 0; i < nodes; ++i) {
      BufferPtr next = Get(i, bytes);
      Mark(next, i);
      EXPECT_TRUE(i == 0 || HasMark(before, i - 1));
      at.push_back(next->data());
      before = std::move(next);
    }
    before = BufferPtr();
    memory_->EndRun(true);
    return at;
  }

  std::unique_ptr<ArenaPlanner> planner_;
  std::unique_ptr<StepAllocator> memory_;
};

TEST_F(ArenaTest, TheFirstRunLearnsAndLaterOnesShareABlock) {
  RunLine();
  EXPECT_EQ(planner_->stats().plans, 1);
  EXPECT_EQ(planner_->stats().planned, 6);
  EXPECT_EQ(planner_->stats().slices, 0);
  EXPECT_EQ(planner_->stats().bytes, static_cast<int64_t>(2 * kSize));
  const std::vector<const void*> second = RunLine();
  const int64_t calls = HostAllocatorStats().system_allocations;
  EXPECT_EQ(RunLine(), second);
  EXPECT_EQ(HostAllocatorStats().system_allocations, calls);
  EXPECT_EQ(planner_->stats().slices, 12);
  EXPECT_EQ(planner_->stats().from_outside, 6);
  EXPECT_EQ(planner_->stats().plans, 1);
  for (const void* at : second) {
    EXPECT_LT(static_cast<const char*>(at) - static_cast<const char*>(*std::min_element(second.begin(), second.end())),
              static_cast<ptrdiff_t>(2 * kSize));
  }
}

TEST_F(ArenaTest, WhatTheFirstRunHadIsNotKept) {
  TrimHostAllocator();
  RunLine();
  EXPECT_EQ(HostAllocatorStats().bytes_cached, 0);
  RunLine();
  EXPECT_EQ(HostAllocatorStats().bytes_cached, static_cast<int64_t>(2 * kSize));
}

TEST_F(ArenaTest, SmallValuesAreTheCLibrarys) {
  for (int i = 0; i < 3; ++i) RunLine(6, kArenaFromBytes - 1);
  EXPECT_FALSE(planner_->in_use());
  EXPECT_EQ(planner_->stats().from_outside, 0);
}

TEST_F(ArenaTest, SeveralValuesOfANodeKeepApart) {
  for (int run = 0; run < 4; ++run) {
    std::vector<BufferPtr> all;
    memory_->BeginNode(3);
    for (int i = 0; i < 20; ++i) {  // more than are planned
      all.push_back(memory_->Allocate(kSize + 64 * static_cast<size_t>(i)));
      Mark(all.back(), i);
    }
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(HasMark(all[static_cast<size_t>(i)], i));
    all.clear();
    memory_->EndRun(true);
  }
  EXPECT_EQ(planner_->stats().planned, 8);
  EXPECT_EQ(planner_->stats().slices, 3 * 8);
}

TEST_F(ArenaTest, WhatIsHeldLongerThanPlannedKeepsItsPlace) {
  RunLine();
  for (int run = 0; run < 4; ++run) {
    BufferPtr kept = Get(0, kSize);  // in the line it goes when node 1 has ended
    Mark(kept, 100);
    BufferPtr before;
    for (int32_t i = 1; i < 6; ++i) {
      BufferPtr next = Get(i, kSize);
      Mark(next, i);
      EXPECT_TRUE(HasMark(kept, 100)) << "run " << run << " node " << i;
      before = std::move(next);
    }
    before = BufferPtr();
    kept = BufferPtr();
    memory_->EndRun(true);
  }
  const ArenaStats stats = planner_->stats();
  EXPECT_EQ(stats.escapees, 0);
  EXPECT_EQ(stats.bytes, static_cast<int64_t>(3 * kSize));  // learned
  EXPECT_EQ(stats.plans, 2);
  RunLine();
  EXPECT_EQ(planner_->stats().slices - stats.slices, 6);
}

TEST_F(ArenaTest, WhatOutlivesTheFirstRunIsNeverPlanned) {
  std::vector<BufferPtr> kept;
  for (int run = 0; run < 5; ++run) {
    BufferPtr value = Get(0, kSize);
    Mark(value, run);
    kept.push_back(value);
    value = Get(1, kSize);
    Mark(value, 100);
    value = BufferPtr();
    memory_->EndRun(true);
  }
  for (int run = 0; run < 5; ++run) EXPECT_TRUE(HasMark(kept[static_cast<size_t>(run)], run));
  EXPECT_EQ(planner_->stats().escapees, 1);
  EXPECT_EQ(planner_->stats().planned, 1);
  EXPECT_EQ(planner_->stats().slices, 4);
  EXPECT_EQ(planner_->stats().plans, 1);
}

TEST_F(ArenaTest, WhatEscapesALaterRunPinsItsBlockAndIsLearned) {
  RunLine();
  RunLine();
  TrimHostAllocator();
  const int64_t before = BytesInUse();
  BufferPtr escaped = Get(0, kSize);
  Mark(escaped, 77);
  Get(1, kSize);
  memory_->EndRun(true);
  EXPECT_EQ(BytesInUse() - before, static_cast<int64_t>(2 * kSize));  // all of the block
  EXPECT_EQ(planner_->stats().escapees, 1);
  EXPECT_EQ(planner_->stats().plans, 2);
  const ArenaStats learned = planner_->stats();
  for (int i = 0; i < 4; ++i) {
    const std::vector<const void*> at = RunLine();
    EXPECT_TRUE(HasMark(escaped, 77));
    for (const void* other : at) EXPECT_NE(other, escaped->data());
  }
  EXPECT_EQ(planner_->stats().slices - learned.slices, 4 * 5);
  EXPECT_EQ(planner_->stats().from_outside - learned.from_outside, 4);
  EXPECT_EQ(BytesInUse() - before, static_cast<int64_t>(2 * kSize));
  escaped = BufferPtr();
  EXPECT_EQ(BytesInUse(), before);
}

TEST_F(ArenaTest, ASliceOutlivesItsPlanner) {
  const int64_t before = BytesInUse();
  RunLine();
  BufferPtr escaped = Get(0, kSize);
  Mark(escaped, 5);
  memory_->EndRun(true);
  Restart();
  EXPECT_TRUE(HasMark(escaped, 5));
  EXPECT_GT(BytesInUse(), before);
  escaped = BufferPtr();
  EXPECT_EQ(BytesInUse(), before);
}

TEST_F(ArenaTest, WhatLeavesByDesignNeverLiesInTheArena) {
  std::vector<bool> leaves(kNodes, false);
  leaves[2] = true;
  Restart(leaves);
  for (int i = 0; i < 3; ++i) RunLine();
  EXPECT_EQ(planner_->stats().planned, 5);
  EXPECT_EQ(planner_->stats().slices, 10);
}

TEST_F(ArenaTest, SmallerValuesHaveTheirPlaceAndLargerOnesGoOutside) {
  RunLine(6, 2 * kSize);
  RunLine(6, kSize);
  EXPECT_EQ(planner_->stats().slices, 6);
  EXPECT_EQ(Get(0, kSize + 3)->size(), kSize + 3);
  memory_->EndRun(true);
  const int64_t slices = planner_->stats().slices;
  RunLine(6, 2 * kSize + 1);
  EXPECT_EQ(planner_->stats().slices, slices);
  RunLine(6, 2 * kSize + 1);
  EXPECT_EQ(planner_->stats().plans, 2);
  RunLine(6, 2 * kSize + 1);
  EXPECT_EQ(planner_->stats().slices, slices + 6);
}

TEST_F(ArenaTest, SizesThatNeverSettleMakeFewPlans) {
  for (size_t run = 0; run < 10000; ++run) {
    BufferPtr first = Get(0, kArenaFromBytes + 64 * run);
    BufferPtr second = Get(1, kArenaFromBytes + 32 * run);
    first = BufferPtr();
    second = BufferPtr();
    memory_->EndRun(true);
  }
  EXPECT_GE(planner_->stats().plans, 2);
  EXPECT_LE(planner_->stats().plans, 15);
}

TEST_F(ArenaTest, AFailedRunTeachesNothingButWhatEscaped) {
  Get(0, kSize);
  memory_->EndRun(false);
  EXPECT_EQ(planner_->stats().plans, 0);
  RunLine();
  const int64_t before = BytesInUse();
  Get(0, kSize);
  Get(1, 2 * kSize);
  memory_->EndRun(false);
  EXPECT_EQ(BytesInUse(), before);
  EXPECT_EQ(planner_->stats().plans, 1);
  const BufferPtr escaped = Get(0, kSize);
  memory_->EndRun(false);
  EXPECT_EQ(planner_->stats().escapees, 1);
}

TEST_F(ArenaTest, RunsAtOnceHaveBlocksOfTheirOwn) {
  RunLine();
  StepAllocator other(*planner_);
  BufferPtr mine = Get(0, kSize);
  other.BeginNode(0);
  BufferPtr theirs = other.Allocate(kSize);
  Mark(mine, 1);
  Mark(theirs, 2);
  EXPECT_TRUE(HasMark(mine, 1));
  EXPECT_TRUE(HasMark(theirs, 2));
  mine = BufferPtr();
  theirs = BufferPtr();
  memory_->EndRun(true);
  other.EndRun(true);
  EXPECT_EQ(planner_->stats().slices, 2);
}

// Whatever a run does, no two buffers that are there share a byte.
class RandomRuns {
 public:
  RandomRuns(ArenaPlanner& planner, uint64_t seed, std::function<void(BufferPtr, int)> keep)
      : memory_(planner), random_(seed), keep_(std::move(keep)) {}

  void Run() {
    std::vector<std::pair<BufferPtr, int>> held;
    for (int32_t node = 0; node < 16; ++node) {
      memory_.BeginNode(node);
      for (uint64_t k = 0; k < 1 + random_() % 2; ++k) {
        const int mark = static_cast<int>(random_() % 256);
        BufferPtr buffer = memory_.Allocate(kArenaFromBytes / 2 * (1 + random_() % 5));
        Mark(buffer, mark);
        held.emplace_back(std::move(buffer), mark);
      }
      for (size_t i = 0; i < held.size();) {
        ASSERT_TRUE(HasMark(held[i].first, held[i].second)) << "node " << node;
        if (random_() % 3 == 0) {
          if (random_() % 200 == 0) keep_(held[i].first, held[i].second);
          std::swap(held[i], held.back());
          held.pop_back();
        } else {
          ++i;
        }
      }
    }
    held.clear();
    memory_.EndRun(random_() % 10 != 0);
  }

 private:
  StepAllocator memory_;
  std::mt19937_64 random_;
  std::function<void(BufferPtr, int)> keep_;
};

TEST_F(ArenaTest, RandomRunsNeverShareBytes) {
  const int64_t before = BytesInUse();
  {
    std::vector<std::pair<BufferPtr, int>> kept;
    std::mt19937_64 random(1);
    RandomRuns runs(*planner_, 2, [&](BufferPtr buffer, int mark) {
      kept.emplace_back(std::move(buffer), mark);
      if (kept.size() > 6) {
        const size_t at = random() % kept.size();
        EXPECT_TRUE(HasMark(kept[at].first, kept[at].second));
        std::swap(kept[at], kept.back());
        kept.pop_back();
      }
    });
    for (int i = 0; i < 600 && !HasFatalFailure(); ++i) runs.Run();
    EXPECT_GT(planner_->stats().slices, 0);
    EXPECT_GT(planner_->stats().escapees, 0);
  }
  EXPECT_EQ(BytesInUse(), before);
}

TEST_F(ArenaTest, RunsOnManyThreads) {
  const int64_t before = BytesInUse();
  {
    Mutex mu;
    std::vector<std::pair<BufferPtr, int>> kept;  // released by any thread
    const auto keep = [&](BufferPtr buffer, int mark) {
      std::pair<BufferPtr, int> out;
      MutexLock lock(mu);
      kept.emplace_back(std::move(buffer), mark);
      if (kept.size() > 4) {
        out = std::move(kept.front());
        kept.erase(kept.begin());
        EXPECT_TRUE(HasMark(out.first, out.second));
      }
    };
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        RandomRuns runs(*planner_, 10 + t, keep);
        for (int i = 0; i < 100; ++i) runs.Run();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(BytesInUse(), before);
}

}  // namespace
}  // namespace cohort
