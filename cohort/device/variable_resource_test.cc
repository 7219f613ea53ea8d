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

}  // namespace
}  // namespace cohort
