#include "cohort/backends/test/test_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <future>
#include <memory>

namespace cohort {
namespace {

const MemorySpace kSpace = MemorySpace::OfDevice("TEST_MEMORY_TEST", 0);

struct StreamAndMemory {
  StreamAndMemory() : stream("test", {}), memory(std::make_shared<TestMemory>(kSpace, stream)) {}
  ~StreamAndMemory() { Finish(); }
  void Finish() {
    (void)stream.Record()->Synchronize(std::chrono::steady_clock::now() + std::chrono::seconds(60));
    memory->Detach();
  }
  TestStream stream;
  std::shared_ptr<TestMemory> memory;
};

float* Floats(const Tensor& value) { return static_cast<float*>(TrueAddress(value)); }

TEST(TestMemoryDeathTest, TheHostCannotReadIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const StreamAndMemory parts;
        const Tensor value(DType::kFloat32, Shape{4}, *parts.memory);
        std::printf("%f", static_cast<double>(*value.data<float>()));
      },
      "");
}

TEST(TestMemoryTest, FreshMemoryIsPoisoned) {
  StreamAndMemory parts;
  const Tensor value(DType::kFloat32, Shape{2, 3}, *parts.memory);
  EXPECT_EQ(value.space(), kSpace);
  EXPECT_EQ(parts.memory->bytes_in_use(), 64u);
  EXPECT_TRUE(std::isnan(Floats(value)[5]));
  Floats(value)[4] = 2;
  EXPECT_EQ(Floats(value.Slice(1, 2))[1], 2);
}

// The block is handed out at once; what is enqueued before the free still finds its bytes, what comes later does not.
TEST(TestMemoryTest, FreedMemoryIsReusedInTheOrderOfTheStream) {
  StreamAndMemory parts;
  std::promise<void> open;
  const std::shared_future<void> opened = open.get_future().share();
  Tensor first(DType::kFloat32, Shape{2}, *parts.memory);
  float* const address = Floats(first);
  address[0] = 7;
  float before = 0;
  float after = 0;
  parts.stream.Enqueue([&] {
    opened.wait();
    before = *address;
  });
  first.Reset();
  const Tensor second(DType::kFloat32, Shape{2}, *parts.memory);
  EXPECT_EQ(Floats(second), address);
  parts.stream.Enqueue([&] { after = *address; });
  EXPECT_EQ(*address, 7);  // its turn has not come
  open.set_value();
  parts.Finish();
  EXPECT_EQ(before, 7);
  EXPECT_TRUE(std::isnan(after));
}

TEST(TestMemoryTest, BuffersMayOutliveTheStream) {
  Tensor value;
  std::weak_ptr<TestMemory> watched;
  {
    const StreamAndMemory parts;
    value = Tensor(DType::kFloat32, Shape{1000}, *parts.memory);
    watched = parts.memory;
  }
  Floats(value)[999] = 1;
  EXPECT_FALSE(watched.expired());
  value.Reset();
  EXPECT_TRUE(watched.expired());
}

TEST(TestMemoryTest, ABorrowedViewSharesTheBytes) {
  StreamAndMemory parts;
  const Tensor value(DType::kFloat32, Shape{2}, *parts.memory);
  Tensor view = BorrowedView(DType::kFloat32, Shape{1, 2}, TrueAddress(value));
  EXPECT_TRUE(view.space().is_host());
  view.data<float>()[1] = 3;
  EXPECT_EQ(Floats(value)[1], 3);
  EXPECT_TRUE(value.OwnsBufferAlone());
}

}  // namespace
}  // namespace cohort
