// Shapes and sizes as values: constants if they are known, else read in the step.
#include "cohort/ops/dims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using testing::Interpreter;

class DimsTest : public ::testing::Test {
 protected:
  Output Value(const Shape& shape) { return ops::Placeholder(graph_, DType::kFloat32, shape); }
  Graph graph_;
};

TEST_F(DimsTest, KnownSizesAreConstants) {
  const Output x = Value({2, 3, -1, 5});
  const Output whole = ops::ShapeValue(Value({2, 3}), DType::kInt64);
  EXPECT_EQ(whole.node->op_name(), "Const");
  EXPECT_THAT(Interpreter().Run1(whole).ToVector<int64_t>(), ElementsAre(2, 3));
  const Output part = ops::DimValues(x, 0, 2);
  EXPECT_EQ(part.node->op_name(), "Const");
  EXPECT_THAT(Interpreter().Run1(part).ToVector<int32_t>(), ElementsAre(2, 3));
  for (const int axis : {3, -1}) {
    const Output size = ops::DimValue(x, axis);
    EXPECT_EQ(size.node->op_name(), "Const");
    EXPECT_EQ(Interpreter().Run1(size).scalar<int32_t>(), 5);
  }
}

TEST_F(DimsTest, ALargeSizeDoesNotWrap) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_THAT(Interpreter().Run1(ops::ShapeValue(Value({large}))).ToVector<int64_t>(), ElementsAre(large));
  EXPECT_EQ(Interpreter().Run1(ops::DimValue(Value({large}), 0, DType::kInt64)).scalar<int64_t>(), large);
  EXPECT_THROW(ops::DimValue(Value({large}), 0), InvalidArgumentError);
}

TEST_F(DimsTest, OtherSizesAreReadInTheStep) {
  for (const Shape& declared : {Shape{2, -1, -1}, Shape::UnknownRank()}) {
    const Output x = Value(declared);
    const Interpreter::Feeds feeds = {{x, Tensor(DType::kFloat32, {2, 3, 4})}};
    for (const DType dtype : {DType::kInt32, DType::kInt64}) {
      const std::vector<Output> sizes = {ops::ShapeValue(x, dtype), ops::DimValues(x, 1, 3, dtype),
                                         ops::DimValue(x, 1, dtype), ops::DimValue(x, -1, dtype)};
      for (const Output& size : sizes) EXPECT_EQ(size.dtype(), dtype);
      const std::vector<Tensor> values = Interpreter().Run(sizes, feeds);
      EXPECT_EQ(values[0].shape(), (Shape{3}));
      EXPECT_EQ(values[1].shape(), (Shape{2}));
      EXPECT_EQ(values[2].shape(), Shape{});
      EXPECT_EQ(values[3].shape(), Shape{});
    }
    EXPECT_EQ(Interpreter().Run1(ops::DimValue(x, 1), feeds).scalar<int32_t>(), 3);
    EXPECT_EQ(Interpreter().Run1(ops::DimValue(x, -1), feeds).scalar<int32_t>(), 4);
    EXPECT_THAT(Interpreter().Run1(ops::DimValues(x, 1, 3), feeds).ToVector<int32_t>(), ElementsAre(3, 4));
    EXPECT_THAT(Interpreter().Run1(ops::ShapeValue(x), feeds).ToVector<int32_t>(), ElementsAre(2, 3, 4));
  }
}

TEST_F(DimsTest, RefusesAnAxisThatIsNotThere) {
  EXPECT_THROW(ops::DimValue(Value({2}), 1), InvalidArgumentError);
  EXPECT_THROW(ops::DimValue(Value(Shape{}), -1), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort
