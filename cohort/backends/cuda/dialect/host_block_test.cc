// Tests of how the host runs the blocks of a launch, and of the functions of the dialect that threads call together.
#include "cohort/backends/cuda/dialect/host_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/reduce.h"

namespace cohort::cuda {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

LaunchSize SizeOf(uint32_t blocks, uint32_t threads, size_t shared_bytes = 0) {
  LaunchSize size;
  size.blocks[0] = blocks;
  size.threads[0] = threads;
  size.shared_bytes = shared_bytes;
  return size;
}

template <typename K>
void RunKernel(const K& kernel, const LaunchSize& size) {
  RunOnHost<K>(&kernel, size);
}

template <bool kWait>
struct CountVisits {
  static constexpr bool kWaits = kWait;
  int* visits;  // [blocks][threads], each in three dimensions

  COHORT_KERNEL void operator()(const Thread& t) const {
    const uint32_t block = (t.block(2) * t.blocks(1) + t.block(1)) * t.blocks(0) + t.block(0);
    const uint32_t thread = (t.thread(2) * t.threads(1) + t.thread(1)) * t.threads(0) + t.thread(0);
    ++visits[block * t.threads(0) * t.threads(1) * t.threads(2) + thread];
  }
};

TEST(HostBlockTest, EachThreadOfEachBlockRunsOnce) {
  LaunchSize size;
  const uint32_t blocks[] = {5, 3, 2}, threads[] = {8, 2, 3};
  std::copy(blocks, blocks + 3, size.blocks);
  std::copy(threads, threads + 3, size.threads);
  std::vector<int> plain(30 * 48), waiting(30 * 48);
  RunKernel(CountVisits<false>{plain.data()}, size);
  RunKernel(CountVisits<true>{waiting.data()}, size);
  EXPECT_THAT(plain, Each(1));
  EXPECT_THAT(waiting, Each(1));
}

struct NoteOrder {
  uint32_t* next;
  uint32_t* order;

  COHORT_KERNEL void operator()(const Thread& t) const { order[AtomicAdd(next, 1)] = t.block(); }
};

std::vector<uint32_t> OrderOfBlocks(uint64_t seed, uint32_t blocks) {
  SeedHostBlocks(seed);
  std::vector<uint32_t> order(blocks);
  uint32_t next = 0;
  RunKernel(NoteOrder{&next, order.data()}, SizeOf(blocks, 1));
  return order;
}

TEST(HostBlockTest, TheSeedGivesTheOrderOfBlocks) {
  const std::vector<uint32_t> order = OrderOfBlocks(5, 100);
  EXPECT_EQ(order, OrderOfBlocks(5, 100));
  EXPECT_NE(order, OrderOfBlocks(6, 100));
  std::vector<uint32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NE(order, sorted);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(sorted[i], i);
}

// Reverses the elements of each block through shared memory.
template <bool kSync>
struct Reverse {
  static constexpr bool kWaits = true;
  int* data;

  COHORT_KERNEL void operator()(const Thread& t) const {
    COHORT_SHARED(t, int, shared, 256);
    shared[t.thread()] = data[t.first()];
    if (kSync) t.Sync();
    data[t.first()] = shared[t.threads() - 1 - t.thread()];
  }
};

template <bool kSync>
int CountWrong() {
  std::vector<int> data(1024);
  for (int i = 0; i < 1024; ++i) data[static_cast<size_t>(i)] = i;
  RunKernel(Reverse<kSync>{data.data()}, SizeOf(4, 256));
  int wrong = 0;
  for (int i = 0; i < 1024; ++i) wrong += data[static_cast<size_t>(i)] != i / 256 * 256 + 255 - i % 256;
  return wrong;
}

TEST(HostBlockTest, SyncWaitsForAllThreads) { EXPECT_EQ(CountWrong<true>(), 0); }
TEST(HostBlockTest, AForgottenSyncGivesWrongValues) { EXPECT_GT(CountWrong<false>(), 0); }

struct ReadShared {
  static constexpr bool kWaits = true;
  float* found;

  COHORT_KERNEL void operator()(const Thread& t) const {
    COHORT_SHARED(t, float, shared, 4);
    auto* dynamic = DynamicShared<float>(t);
    found[2 * t.block()] = shared[3];
    found[2 * t.block() + 1] = dynamic[3];
    shared[3] = dynamic[3] = 1;
  }
};

TEST(HostBlockTest, SharedMemoryIsPoisonedForEachBlock) {
  std::vector<float> found(16);
  RunKernel(ReadShared{found.data()}, SizeOf(8, 1, 16));
  for (const float value : found) EXPECT_TRUE(std::isnan(value)) << value;
}

template <typename T>
COHORT_KERNEL T* SharedOf(const Thread& t) {
  COHORT_SHARED(t, T, memory, 1);
  return memory;
}
struct KeepTwo {
  static constexpr bool kWaits = true;
  float* sum;

  COHORT_KERNEL void operator()(const Thread& t) const {
    *SharedOf<int>(t) = 1;
    *SharedOf<float>(t) = 2;
    *sum = static_cast<float>(*SharedOf<int>(t)) + *SharedOf<float>(t);
  }
};

TEST(HostBlockTest, DeclarationsOfSharedMemoryDoNotMeet) {
  float sum = 0;
  RunKernel(KeepTwo{&sum}, SizeOf(1, 1));
  EXPECT_EQ(sum, 3);
}

template <typename T>
struct SumBlocks {
  static constexpr bool kWaits = true;
  T* sums;  // one for each thread

  COHORT_KERNEL void operator()(const Thread& t) const {
    const T first = ReduceBlock(t, static_cast<T>(t.first()), JoinSum());
    const T largest = ReduceBlock(t, static_cast<T>(t.thread()), JoinMax());
    sums[t.first()] = first + largest;
  }
};

template <typename T>
void CheckSums(uint32_t threads) {
  std::vector<T> sums(3 * threads);
  RunKernel(SumBlocks<T>{sums.data()}, SizeOf(3, threads));
  const uint32_t sum_of_block = threads * (threads - 1) / 2;
  for (uint32_t i = 0; i < sums.size(); ++i) {
    const uint32_t first = i / threads * threads;
    EXPECT_EQ(sums[i], static_cast<T>(threads * first + sum_of_block + threads - 1)) << i;
  }
}

TEST(HostBlockTest, ReductionsGiveAllThreadsTheResult) {
  for (const uint32_t threads : {32U, 64U, 256U, 1024U}) {
    CheckSums<int>(threads);
    CheckSums<double>(threads);
    CheckSums<int64_t>(threads);
  }
}

TEST(HostBlockTest, ThreadsOfTheProcessRunLaunchesAtTheSameTime) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 5; ++k) CheckSums<int>(128);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

struct SomeEnd {
  static constexpr bool kWaits = true;

  COHORT_KERNEL void operator()(const Thread& t) const {
    if (t.thread() >= 3) return;
    t.Sync();
  }
};
struct SomeExchange {
  static constexpr bool kWaits = true;

  COHORT_KERNEL void operator()(const Thread& t) const {
    if (t.thread() % 2 == 0) t.Sync();
    (void)ShuffleXor(t, 1, 1);
  }
};
struct Undeclared {
  COHORT_KERNEL void operator()(const Thread& t) const { t.Sync(); }
};
struct HalfAWarp {
  static constexpr bool kWaits = true;

  COHORT_KERNEL void operator()(const Thread& t) const { (void)ShuffleXor(t, 1, 16); }
};

TEST(HostBlockDeathTest, ThreadsThatWaitForOthersForEverEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(RunKernel(SomeEnd(), SizeOf(1, 64)), "got 61 threads that have ended, 3 that wait at Sync, and 0");
  EXPECT_DEATH(RunKernel(SomeExchange(), SizeOf(1, 32)), "got 0 threads that have ended, 16 that wait at Sync, and 16");
}

TEST(HostBlockDeathTest, MistakesInAKernelEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(RunKernel(Undeclared(), SizeOf(1, 32)), "expected a kernel that waits to declare kWaits");
  EXPECT_DEATH(RunKernel(HalfAWarp(), SizeOf(1, 16)), "got 4 bytes and lane");
}

}  // namespace
}  // namespace cohort::cuda
