// The pinned memory of a driver: which blocks are used again, how much there is at most, and what happens without any.
#include "cohort/backends/cuda/pinned_pool.h"

#include <gtest/gtest.h>

#include "cohort/backends/cuda/fake/fake_driver.h"

namespace cohort::cuda {
namespace {

constexpr size_t kKilobyte = 1024;

class PinnedPoolTest : public ::testing::Test {
 protected:
  Tensor New(PinnedPool& pool, size_t bytes) {
    return pool.NewTensor(0, DType::kUint8, Shape{static_cast<int64_t>(bytes)});
  }
  int64_t blocks() { return driver_.control().live().pinned; }

  FakeDriver driver_;
};

TEST_F(PinnedPoolTest, ABlockThatIsGivenBackIsUsedAgainForTensorsOfItsSize) {
  const auto pool = std::make_shared<PinnedPool>(driver_);
  const void* first = nullptr;
  {
    const Tensor a = New(*pool, 1000), b = New(*pool, 1000);
    first = a.raw_data();
    EXPECT_NE(b.raw_data(), first);
    EXPECT_EQ(blocks(), 2);
    const Tensor view = a;  // the block is lent until the last tensor of it ends
  }
  EXPECT_EQ(pool->bytes(), 2 * kKilobyte);
  const Tensor again = New(*pool, 600), other = New(*pool, 1024), small = New(*pool, 1);
  EXPECT_TRUE(again.raw_data() == first || other.raw_data() == first);
  EXPECT_EQ(blocks(), 3);
  EXPECT_EQ(pool->bytes(), 2 * kKilobyte + 256);
  EXPECT_FALSE(pool->Has(New(*pool, 0)));
  EXPECT_EQ(blocks(), 3);
}

TEST_F(PinnedPoolTest, WhatIsLentAndKeptHasALimitAndTensorsBeyondItAreNotPinned) {
  const auto pool = std::make_shared<PinnedPool>(driver_, 8 * kKilobyte);
  const Tensor small = New(*pool, 4 * kKilobyte);
  {
    const Tensor fits = New(*pool, 4 * kKilobyte), beyond = New(*pool, 1);
    EXPECT_TRUE(pool->Has(small) && pool->Has(fits));
    EXPECT_FALSE(pool->Has(beyond));
    EXPECT_EQ(beyond.bytes(), 1u);
  }
  EXPECT_EQ(pool->bytes(), 8 * kKilobyte);
  EXPECT_EQ(blocks(), 2);
  EXPECT_TRUE(pool->Has(New(*pool, 3 * kKilobyte))) << "the block that was given back";
  const auto whole = PinnedPool::Of(driver_);
  EXPECT_FALSE(whole->Has(New(*whole, PinnedPool::kMostBytes + 1)));
  EXPECT_EQ(whole->bytes(), 0u);
}

TEST_F(PinnedPoolTest, AValueIsCopiedOnceAndThenPassedOn) {
  const auto pool = std::make_shared<PinnedPool>(driver_);
  const Tensor value = Tensor::Vector<float>({1, 2, 3});
  EXPECT_FALSE(pool->Has(value));
  const Tensor pinned = pool->Pinned(0, value);
  EXPECT_TRUE(pool->Has(pinned));
  EXPECT_EQ(pinned.ToVector<float>(), value.ToVector<float>());
  EXPECT_EQ(pool->Pinned(0, pinned).raw_data(), pinned.raw_data());
  EXPECT_EQ(blocks(), 1);
}

TEST_F(PinnedPoolTest, WithoutPinnedMemoryATensorHasOtherMemory) {
  const auto pool = std::make_shared<PinnedPool>(driver_);
  driver_.control().FailPinnedAllocation(1);
  const Tensor copy = pool->Pinned(0, Tensor::Vector<float>({5}));
  EXPECT_FALSE(pool->Has(copy));
  EXPECT_EQ(copy.ToVector<float>(), std::vector<float>{5});
  EXPECT_EQ(pool->bytes(), 0u);
  EXPECT_TRUE(pool->Has(New(*pool, 8)));
}

TEST_F(PinnedPoolTest, ADriverHasOnePoolAsLongAsSomebodyHoldsItOrATensorOfIt) {
  FakeDriver other;
  auto pool = PinnedPool::Of(driver_);
  EXPECT_EQ(PinnedPool::Of(driver_), pool);
  EXPECT_NE(PinnedPool::Of(other), pool);
  Tensor tensor = New(*pool, 10);
  pool = nullptr;
  EXPECT_EQ(blocks(), 1);
  EXPECT_TRUE(PinnedPool::Of(driver_)->Has(tensor));
  tensor.Reset();
  EXPECT_EQ(blocks(), 0);
}

}  // namespace
}  // namespace cohort::cuda
