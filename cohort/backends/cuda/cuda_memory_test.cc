// The caching memory of a device on the fake driver.
#include "cohort/backends/cuda/cuda_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "cohort/backends/cuda/cuda_stream.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMega = size_t{1} << 20;

class CudaMemoryTest : public ::testing::Test {
 protected:
  std::shared_ptr<CudaMemory> Make(size_t limit, bool reserve_all = false, int card = 0) {
    return std::make_shared<CudaMemory>(MemorySpace::OfDevice("GPU", 100), driver_, stream_,
                                        CudaMemory::Options{card, limit, reserve_all, "GPU:7", {}});
  }
  void Wait() { (void)stream_.Record()->Synchronize(std::chrono::steady_clock::now() + std::chrono::minutes(1)); }

  FakeDriver fake_;
  Driver& driver_ = CardOr(fake_);
  CudaStream stream_{driver_, 0, "test"};
};

TEST_F(CudaMemoryTest, FreedMemoryIsUsedAgain) {
  const auto memory = Make(100 * kMega);
  const void* first = nullptr;
  {
    const BufferPtr buffer = memory->Allocate(1000);
    EXPECT_EQ(buffer->size(), 1000u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 256, 0u);
    EXPECT_EQ(memory->stats().in_use, 1024u);
    first = buffer->data();
  }
  EXPECT_EQ(memory->stats().in_use, 0u);
  EXPECT_EQ(memory->Allocate(900)->data(), first);
  EXPECT_EQ(memory->stats().from_card, 1);
  EXPECT_EQ(memory->stats().most_in_use, 1024u);
  EXPECT_EQ(memory->Allocate(0)->size(), 0u);
}

// Poison is work on the stream: after the work of the freed buffer, before the work of the next one.
TEST_F(CudaMemoryTest, FreedMemoryIsPoisonedInTheOrderOfTheStream) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  const auto memory = Make(100 * kMega);
  int seen = 0;
  int poisoned = 0;
  fake_.control().Hold(0);
  void* data = nullptr;
  {
    const BufferPtr buffer = memory->Allocate(64);
    data = buffer->data();
    driver_.FillAsync(data, 1, sizeof(int), stream_.handle());
    driver_.CopyAsync(&seen, data, sizeof(int), Driver::Copy::kToHost, stream_.handle());
  }
  const BufferPtr again = memory->Allocate(64);
  ASSERT_EQ(again->data(), data);
  driver_.CopyAsync(&poisoned, data, sizeof(int), Driver::Copy::kToHost, stream_.handle());
  fake_.control().Release(0);
  Wait();
  EXPECT_EQ(seen, 0x01010101);
  EXPECT_EQ(poisoned, -1);
}

// Random sizes, whose bytes must not overlap and must all come back.
TEST_F(CudaMemoryTest, BuffersDoNotOverlapAndNeighboursAreMerged) {
  COHORT_NEEDS_FAKE("it looks into memory of the card");
  const CardMemoryAccess access;
  const auto memory = Make(512 * kMega);
  std::mt19937 random(5);
  struct Held {
    BufferPtr buffer;
    unsigned char mark;
  };
  std::vector<Held> held;
  for (int i = 0; i < 3000; ++i) {
    if (held.size() < 60 && random() % 2 == 0) {
      const size_t bytes = random() % 4 == 0 ? random() % (4 * kMega) : random() % 5000;
      const BufferPtr buffer = memory->Allocate(bytes);
      Wait();  // for the poison of the memory's last user
      const auto mark = static_cast<unsigned char>(random() % 200);
      if (bytes > 0) std::memset(buffer->data(), mark, bytes);
      held.push_back({buffer, mark});
    } else if (!held.empty()) {
      const size_t k = random() % held.size();
      const auto* data = static_cast<const unsigned char*>(held[k].buffer->data());
      const size_t size = held[k].buffer->size();
      for (size_t j = 0; j < size; j += 97) ASSERT_EQ(data[j], held[k].mark);
      ASSERT_TRUE(size == 0 || data[size - 1] == held[k].mark);
      held.erase(held.begin() + static_cast<int64_t>(k));
    }
  }
  held.clear();
  EXPECT_EQ(memory->stats().in_use, 0u);
  EXPECT_GT(memory->stats().reserved, 0u);
  memory->Trim();  // gives all back only if all neighbours have been merged
  EXPECT_EQ(memory->stats().reserved, 0u);
  EXPECT_EQ(fake_.control().bytes_allocated(0), 0u);
}

TEST_F(CudaMemoryTest, AnErrorNamesTheLargestHolders) {
  const auto memory = Make(10 * kMega);
  Graph graph;
  const Node& big = *ops::Placeholder(graph, DType::kFloat32).node;
  const Node& small = *ops::Placeholder(graph, DType::kFloat32).node;
  BufferPtr first;
  BufferPtr second;
  {
    const AllocationOwner owner(big);
    first = memory->Allocate(5 * kMega);
  }
  {
    const AllocationOwner owner(small);
    second = memory->Allocate(2 * kMega);
  }
  const BufferPtr third = memory->Allocate(kMega / 4);
  const std::string message = MessageOf<ResourceExhaustedError>([&] { memory->Allocate(6 * kMega); });
  EXPECT_THAT(message, AllOf(HasSubstr("6 MB (6291456 bytes)"), HasSubstr("GPU:7"), HasSubstr("limit of 10 MB")));
  EXPECT_THAT(message, AllOf(HasSubstr("5 MB by " + big.name() + " (Placeholder), 2 MB by " + small.name()),
                             HasSubstr("0.2 MB by values from the host")));
  EXPECT_THROW(memory->Allocate(~size_t{0}), ResourceExhaustedError);
  first = {};
  EXPECT_EQ(memory->Allocate(5 * kMega)->size(), 5 * kMega);  // goes on
}

TEST_F(CudaMemoryTest, WhatOthersOfTheCardKeepIsGivenBackFirst) {
  COHORT_NEEDS_FAKE("the test has cards of its own");
  FakeDriverOptions options;
  options.memory_bytes = 40 * kMega;
  FakeDriver driver(options);
  CudaStream stream(driver, 0, "small");
  const auto make = [&] {
    return std::make_shared<CudaMemory>(MemorySpace::OfDevice("GPU", 101), driver, stream,
                                        CudaMemory::Options{0, 40 * kMega, false, "GPU:0", {}});
  };
  const auto one = make();
  const auto other = make();
  one->Allocate(30 * kMega);
  EXPECT_GE(one->stats().reserved, 30 * kMega);
  const BufferPtr large = other->Allocate(35 * kMega);
  EXPECT_EQ(one->stats().reserved, 0u);
  EXPECT_THROW(one->Allocate(10 * kMega), ResourceExhaustedError);
}

TEST_F(CudaMemoryTest, AFailedAllocationOfTheDriverIsTriedAgain) {
  COHORT_NEEDS_FAKE("it fails when the test says so");
  const auto memory = Make(200 * kMega);
  memory->Allocate(40 * kMega);
  fake_.control().FailAllocation(1);
  EXPECT_EQ(memory->Allocate(100 * kMega)->size(), 100 * kMega);
}

TEST_F(CudaMemoryTest, AllMemoryCanBeReservedAtOnce) {
  const auto memory = Make(64 * kMega, true);
  const BufferPtr small = memory->Allocate(100);
  EXPECT_EQ(memory->stats().reserved, 64 * kMega);
  const BufferPtr large = memory->Allocate(60 * kMega);
  EXPECT_EQ(memory->stats().from_card, 1);
}

// The card holds the work that was enqueued after the first two calls. The third call gets memory that does not wait
// for it, and the fourth, for which nothing is kept, memory that does.
TEST_F(CudaMemoryTest, MemoryForACopyWaitsOnlyForItsLastUser) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  const auto memory = Make(100 * kMega);
  const void* const first = memory->AllocateForCopy(5000).buffer->data();
  memory->AllocateForCopy(10);
  Wait();
  fake_.control().Hold(0);
  (void)stream_.Record();
  const CudaMemory::ForCopy again = memory->AllocateForCopy(5000);
  EXPECT_EQ(again.buffer->data(), first);
  EXPECT_TRUE(again.writable->reached());
  const CudaMemory::ForCopy other = memory->AllocateForCopy(5000);
  EXPECT_NE(other.buffer->data(), first);
  EXPECT_FALSE(other.writable->reached());
  fake_.control().Release(0);
  EXPECT_TRUE(other.writable->Synchronize(std::chrono::steady_clock::now() + std::chrono::minutes(1)).ok());
}

// The poison of the freed buffer is work of its last user.
TEST_F(CudaMemoryTest, MemoryForACopyIsPoisonedBeforeItMayBeWritten) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  const auto memory = Make(100 * kMega);
  const void* const first = memory->AllocateForCopy(64).buffer->data();
  fake_.control().Hold(0);
  std::set<const void*> others;
  for (int i = 0; i < 3; ++i) others.insert(memory->AllocateForCopy(64).buffer->data());
  EXPECT_EQ(others.size(), 3u);  // while few are kept
  EXPECT_EQ(others.count(first), 0u);
  const CudaMemory::ForCopy again = memory->AllocateForCopy(64);
  ASSERT_EQ(again.buffer->data(), first);
  EXPECT_FALSE(again.writable->reached());
  fake_.control().Release(0);
  EXPECT_TRUE(again.writable->Synchronize(std::chrono::steady_clock::now() + std::chrono::minutes(1)).ok());
  const CardMemoryAccess access;
  EXPECT_EQ(static_cast<const int*>(again.buffer->data())[0], -1);
}

// The card holds the work, so no step ends. What four steps have freed is not used, however many buffers that is.
TEST_F(CudaMemoryTest, ManyCopiesOfOneSizeDoNotWaitForTheStepsBefore) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  constexpr size_t kCopies = 6;
  const auto memory = Make(100 * kMega);
  std::set<const void*> seen;
  const auto step = [&] {
    std::vector<CudaMemory::ForCopy> copies;
    for (size_t i = 0; i < kCopies; ++i) copies.push_back(memory->AllocateForCopy(5000));
    for (const CudaMemory::ForCopy& copy : copies) seen.insert(copy.buffer->data());
  };
  fake_.control().Hold(0);
  for (size_t steps = 1; steps <= 4; ++steps) {
    step();
    EXPECT_EQ(seen.size(), steps * kCopies);
  }
  step();
  EXPECT_EQ(seen.size(), 4 * kCopies);
  fake_.control().Release(0);
}

TEST_F(CudaMemoryTest, ACopyMayBeMadeOnlyIfThereIsFreeMemory) {
  constexpr size_t kLimit = 64 * kMega;
  const auto memory = Make(kLimit, /*reserve_all=*/true);
  int asked = 0;
  memory->SetBeforeExhausted([&] {
    ++asked;
    return false;
  });
  const auto other = Make(kLimit);
  other->Allocate(100);
  memory->AllocateForCopy(kMega);
  EXPECT_TRUE(memory->TryAllocateForCopy(2 * kMega).buffer);
  const BufferPtr rest = memory->Allocate(kLimit - 3 * kMega);
  ASSERT_EQ(memory->stats().kept, 3 * kMega);
  const size_t of_other = other->stats().reserved;
  EXPECT_FALSE(memory->TryAllocateForCopy(100).buffer);
  EXPECT_FALSE(memory->TryAllocateForCopy(size_t{0} - 1).buffer);
  EXPECT_TRUE(memory->TryAllocateForCopy(kMega).buffer);
  EXPECT_EQ(memory->stats().kept, 3 * kMega);
  EXPECT_EQ(other->stats().reserved, of_other);
  EXPECT_EQ(asked, 0);
  EXPECT_THROW(memory->AllocateForCopy(4 * kMega), ResourceExhaustedError);
  EXPECT_EQ(memory->stats().kept, 0u);
  EXPECT_EQ(other->stats().reserved, 0u);
  EXPECT_EQ(asked, 1);
}

TEST_F(CudaMemoryTest, IfNothingElseIsFreeACopyWaitsForItsLastUser) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  constexpr size_t kLimit = 32 * kMega;
  const auto memory = Make(kLimit, /*reserve_all=*/true);
  BufferPtr first = memory->AllocateForCopy(kMega).buffer;
  const void* const data = first->data();
  const BufferPtr rest = memory->Allocate(kLimit - kMega);
  fake_.control().Hold(0);
  first = BufferPtr();
  const CudaMemory::ForCopy again = memory->TryAllocateForCopy(kMega);
  ASSERT_TRUE(again.buffer);
  EXPECT_EQ(again.buffer->data(), data);
  EXPECT_FALSE(again.writable->reached());
  EXPECT_FALSE(memory->TryAllocateForCopy(kMega).buffer);
  fake_.control().Release(0);
  EXPECT_TRUE(again.writable->Synchronize(std::chrono::steady_clock::now() + std::chrono::minutes(1)).ok());
}

TEST_F(CudaMemoryTest, MemoryThatIsKeptForCopiesServesOthersIfItIsTooMuchOrNeeded) {
  constexpr size_t kLimit = 32 * kMega;
  const auto memory = Make(kLimit, /*reserve_all=*/true);
  std::vector<BufferPtr> copies;
  for (int i = 0; i < 20; ++i) copies.push_back(memory->AllocateForCopy(kMega / 2).buffer);
  copies.clear();
  EXPECT_EQ(memory->stats().in_use, 0u);
  EXPECT_EQ(memory->stats().kept, kLimit / 16);
  for (int i = 0; i < 2; ++i) memory->AllocateForCopy(kMega);  // displaces those that are kept for longer
  EXPECT_EQ(memory->stats().kept, kLimit / 16);
  EXPECT_EQ(memory->Allocate(kLimit)->size(), kLimit);
  EXPECT_EQ(memory->stats().kept, 0u);
  memory->AllocateForCopy(100);
  memory->Trim();
  EXPECT_EQ(memory->stats().reserved, 0u);
}

TEST_F(CudaMemoryTest, ThreadsMayAllocateAndFree) {
  const auto memory = Make(400 * kMega);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<BufferPtr> held(8);
      for (int i = 0; i < 500; ++i) {
        BufferPtr& one = held[random() % held.size()];
        one = i % 2 == 0 ? memory->Allocate(random() % 100000) : memory->AllocateForCopy(random() % 8 * 1000).buffer;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory->stats().in_use, 0u);
  EXPECT_EQ(memory->stats().allocations, 2000);
}

}  // namespace
}  // namespace cohort::cuda
