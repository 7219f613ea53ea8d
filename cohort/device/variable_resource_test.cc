#include "cohort/device/variable_resource.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/device/testing/add_one.h"

namespace cohort {
namespace {

using testing::AddOne;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(VariableTest, TheSecondBufferComesFromItsAllocator) {
  class Counting final : public Allocator {
   public:
    BufferPtr Allocate(size_t bytes) override {
      ++count;
      return HostAllocator().Allocate(bytes);
    }
    MemorySpace space() const override { return MemorySpace::Host(); }
    int count = 0;
  } allocator;
  VariableResource v("v", DType::kFloat32, Shape{2}, allocator);
  v.Assign(Tensor::Vector<float>({1, 2}));
  v.Update(AddOne);  // nobody reads: in place
  EXPECT_EQ(allocator.count, 0);
  const Tensor reader = v.Read();
  v.Update(AddOne);
  EXPECT_EQ(allocator.count, 1);
  EXPECT_THAT(reader.ToVector<float>(), ElementsAre(2, 3));
  EXPECT_THAT(v.Read().ToVector<float>(), ElementsAre(3, 4));
}

// As on a stream: `change` only notes what is to be done. Whoever holds the tensors when the work runs sees the values
// in the order of the updates.
TEST(VariableTest, ChangesMayRunLaterInTheOrderOfTheUpdates) {
  VariableResource v("v", DType::kFloat32, Shape{1});
  v.Assign(Tensor::Vector<float>({1}));
  const float* first = v.Read().data<float>();
  std::vector<std::function<void()>> stream;
  const auto times = [&](float factor) {
    v.Update([&](const Tensor& old, Tensor& out) {
      stream.emplace_back([from = old.data<float>(), to = out.data<float>(), factor] { *to = *from * factor; });
    });
  };
  times(2);
  const Tensor between = v.Read();  // the next update must not write over it
  times(10);
  times(10);
  EXPECT_EQ(v.version(), 4);
  for (const auto& work : stream) work();
  EXPECT_EQ(between.data<float>(), first);
  EXPECT_THAT(between.ToVector<float>(), ElementsAre(2));
  EXPECT_THAT(v.Read().ToVector<float>(), ElementsAre(200));
}

TEST(VariableTest, ShapeOfTheValueNeedsAValue) {
  VariableResource v("v", DType::kFloat32, Shape{-1});
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { v.value_shape(); }), HasSubstr("uninitialized value v"));
  v.Assign(Tensor::Vector<float>({1, 2, 3}));
  EXPECT_EQ(v.value_shape(), (Shape{3}));
  EXPECT_EQ(v.shape(), (Shape{-1}));
}

// Recorded work knows values by their places.
TEST(VariableTest, WorkRunsOnlyWhereItsValuesLie) {
  using Places = VariableResource::Places;
  VariableResource a("a", DType::kFloat32, Shape{2}), b("b", DType::kFloat32, Shape{-1});
  a.Assign(Tensor::Vector<float>({1, 2}));
  EXPECT_TRUE(a.OwnsValueAlone());
  std::vector<VariableResource::Place> places = {{&a, a.Read().raw_data(), Shape{2}, 2}, {&b, nullptr, Shape{1}, 0}};
  int runs = 0;
  const auto run = [&] { return VariableResource::RunAtPlaces(places, [&] { ++runs; }); };
  EXPECT_EQ(run(), Places::kMoved);  // b has no value
  b.Assign(Tensor::Vector<float>({3}));
  places[1].data = b.Read().raw_data();
  const int64_t of_a = a.version(), of_b = b.version();
  EXPECT_EQ(run(), Places::kKept);
  EXPECT_EQ(a.version(), of_a + 2);
  EXPECT_EQ(b.version(), of_b);
  const Tensor read_b = b.Read();
  EXPECT_EQ(run(), Places::kKept);  // b is only read
  {
    const Tensor read_a = a.Read();
    EXPECT_FALSE(a.OwnsValueAlone());
    EXPECT_EQ(run(), Places::kShared);
  }
  EXPECT_EQ(run(), Places::kKept);
  places[1].shape = Shape{2};
  EXPECT_EQ(run(), Places::kMoved);
  places[1].shape = Shape{1};
  b.Assign(Tensor::Vector<float>({3}));
  EXPECT_EQ(run(), Places::kMoved);
  EXPECT_EQ(runs, 3);
  places[1] = places[0];
  EXPECT_THAT(MessageOf<InvalidArgumentError>(run), HasSubstr("'a' twice"));
}

}  // namespace
}  // namespace cohort
