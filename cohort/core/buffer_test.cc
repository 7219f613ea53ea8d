#include "cohort/core/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cohort/core/host_blocks.h"

namespace cohort {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// What the allocator has from the system, used or not.
int64_t Held() {
  const AllocatorStats stats = HostAllocatorStats();
  return stats.bytes_in_use + stats.bytes_cached;
}

class HostAllocatorTest : public ::testing::Test {
 protected:
  void SetUp() override { TrimHostAllocator(); }
  void TearDown() override { TrimHostAllocator(); }
};

TEST_F(HostAllocatorTest, BlocksAreAlignedAndWritable) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{32768}, kMiB + 1}) {
    const BufferPtr block = HostAllocator().Allocate(bytes);
    EXPECT_EQ(block->size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data()) % 64, 0u);
    std::memset(block->data(), 1, bytes);
  }
}

TEST_F(HostAllocatorTest, AFreedBlockOfOneSizeClassIsTheNext) {
  const void* first = HostAllocator().Allocate(kMiB - 5)->data();
  const int64_t calls = HostAllocatorStats().system_allocations;
  EXPECT_EQ(HostAllocator().Allocate(kMiB - 7)->data(), first);
  EXPECT_EQ(HostAllocatorStats().system_allocations, calls);
}

TEST_F(HostAllocatorTest, WholeBlocksWaitForTheNextWhoNeedsAsMuch) {
  const int64_t before = Held();
  const void* data;
  {
    const BufferPtr block = AllocateWholeHostBlock(8 * kMiB, {});
    data = block->data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    EXPECT_EQ(block->size(), 8 * kMiB);
    EXPECT_EQ(Held() - before, static_cast<int64_t>(8 * kMiB));
    std::memset(block->data(), 7, 8 * kMiB);
  }
  EXPECT_EQ(Held() - before, static_cast<int64_t>(8 * kMiB));
  const BufferPtr smaller = AllocateWholeHostBlock(2 * kMiB, {});
  EXPECT_EQ(smaller->data(), data);
  EXPECT_EQ(smaller->size(), 2 * kMiB);
  const BufferPtr other = AllocateWholeHostBlock(2 * kMiB, {});  // while the first one is in use
  EXPECT_NE(other->data(), data);
  EXPECT_EQ(Held() - before, static_cast<int64_t>(10 * kMiB));
}

TEST_F(HostAllocatorTest, OfTheWaitingBlocksTheSmallestOneThatFitsIsTaken) {
  const void* small;
  {
    const BufferPtr large = AllocateWholeHostBlock(6 * kMiB, {});
    const BufferPtr fitting = AllocateWholeHostBlock(4 * kMiB, {});
    small = fitting->data();
  }
  EXPECT_EQ(AllocateWholeHostBlock(3 * kMiB, {})->data(), small);
}

TEST_F(HostAllocatorTest, AWholeBlockThatIsFarTooLargeIsLeftAlone) {
  const int64_t before = Held();
  const void* large = AllocateWholeHostBlock(8 * kMiB, {})->data();
  EXPECT_NE(AllocateWholeHostBlock(kMiB, {})->data(), large);
  EXPECT_EQ(Held() - before, static_cast<int64_t>(9 * kMiB));
}

TEST_F(HostAllocatorTest, ALargerWholeBlockTakesTheWaitingOnesPlace) {
  const int64_t before = Held();
  AllocateWholeHostBlock(4 * kMiB, {});
  AllocateWholeHostBlock(5 * kMiB, {});
  EXPECT_EQ(Held() - before, static_cast<int64_t>(5 * kMiB));
}

TEST_F(HostAllocatorTest, AWholeBlockTakesThePlaceOfTheCachedBlocksItIsToReplace) {
  const int64_t before = Held();
  for (const size_t bytes : {kMiB, 2 * kMiB, 3 * kMiB}) HostAllocator().Allocate(bytes);
  EXPECT_EQ(Held() - before, static_cast<int64_t>(6 * kMiB));
  const std::vector<size_t> replaces = {kMiB, 3 * kMiB - 100, 3 * kMiB, 100};
  const BufferPtr block = AllocateWholeHostBlock(4 * kMiB, replaces);
  EXPECT_EQ(Held() - before, static_cast<int64_t>(6 * kMiB));  // 4, and the cached 2
  const int64_t calls = HostAllocatorStats().system_allocations;
  HostAllocator().Allocate(2 * kMiB);
  EXPECT_EQ(HostAllocatorStats().system_allocations, calls);
}

TEST_F(HostAllocatorTest, ABlockThatWasWaitingTakesTheirPlaceToo) {
  AllocateWholeHostBlock(4 * kMiB, {});
  HostAllocator().Allocate(kMiB);
  const std::vector<size_t> replaces = {kMiB};
  const BufferPtr block = AllocateWholeHostBlock(4 * kMiB, replaces);
  EXPECT_EQ(HostAllocatorStats().bytes_cached, 0);
}

TEST_F(HostAllocatorTest, APassingBlockIsNotKept) {
  const int64_t before = Held();
  {
    const BufferPtr block = AllocatePassingHostBlock(kMiB + 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data()) % 64, 0u);
    EXPECT_EQ(block->size(), kMiB + 1);
    std::memset(block->data(), 7, kMiB + 1);
    EXPECT_GT(Held() - before, static_cast<int64_t>(kMiB));
  }
  EXPECT_EQ(Held(), before);
  EXPECT_EQ(AllocatePassingHostBlock(0)->size(), 0u);
  EXPECT_EQ(Held(), before);
}

TEST_F(HostAllocatorTest, TrimGivesAllBackThatNobodyHolds) {
  const BufferPtr held = AllocateWholeHostBlock(kMiB, {});
  const int64_t before = Held();
  HostAllocator().Allocate(kMiB);
  AllocateWholeHostBlock(2 * kMiB, {});
  EXPECT_GT(Held(), before);
  TrimHostAllocator();
  EXPECT_EQ(Held(), before);
  EXPECT_EQ(HostAllocatorStats().bytes_cached, 0);
}

}  // namespace
}  // namespace cohort
