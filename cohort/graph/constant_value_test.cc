#include "cohort/graph/constant_value.h"

#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/testing/test_ops.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConstantValueTest : public ::testing::Test {
 protected:
  Output Op1(const char* op, Output a) { return graph_.Op(op).Input(a).Finish1(); }
  Output Int(int32_t value) { return TestConst(graph_, Tensor::Scalar(value)); }
  Output Ints(const std::vector<int32_t>& values) { return TestConst(graph_, Tensor::Vector(values)); }
  Output Slice(Output x, int begin, int end, int stride, int begin_mask, int end_mask, int shrink) {
    return graph_.Op("StridedSlice")
        .Input(x)
        .Input(Ints({begin}))
        .Input(Ints({end}))
        .Input(Ints({stride}))
        .Attr("begin_mask", begin_mask)
        .Attr("end_mask", end_mask)
        .Attr("shrink_axis_mask", shrink)
        .Finish1();
  }
  std::vector<int32_t> Values(Output x) {
    const auto value = ConstantValue(x);
    return value ? value->ToVector<int32_t>() : std::vector<int32_t>{-999};
  }

  Graph graph_;
  Output image_ = TestInput(graph_, DType::kFloat32, Shape{8, 28, 27});
  Output batch_ = TestInput(graph_, DType::kFloat32, Shape{-1, 28, 27});
  Output any_ = TestInput(graph_, DType::kFloat32, Shape::UnknownRank());
};

TEST_F(ConstantValueTest, FoldsConstantsAndStaticShapes) {
  EXPECT_EQ(ConstantValue(TestConst(graph_, Tensor::Scalar(2.5f)))->scalar<float>(), 2.5f);
  EXPECT_EQ(ConstantValue(Op1("Identity", Int(7)))->scalar<int32_t>(), 7);
  EXPECT_THAT(Values(Op1("Shape", image_)), ElementsAre(8, 28, 27));
  EXPECT_EQ(ConstantValue(Op1("Size", image_))->scalar<int32_t>(), 8 * 28 * 27);
  EXPECT_EQ(ConstantValue(Op1("Rank", batch_))->scalar<int32_t>(), 3);
  EXPECT_THAT(Values(graph_.Op("Pack").Inputs({Int(3), Op1("Rank", image_)}).Finish1()), ElementsAre(3, 3));
  const Output joined = graph_.Op("ConcatV2").Inputs({Ints({1, 2}), Op1("Shape", image_)}).Input(Int(0)).Finish1();
  EXPECT_THAT(Values(joined), ElementsAre(1, 2, 8, 28, 27));
  EXPECT_THAT(Values(graph_.Op("Mul").Input(Ints({2, 3})).Input(Int(5)).Finish1()), ElementsAre(10, 15));
  const Output wide = graph_.Op("Cast").Input(Ints({4, 5})).Attr("DstT", DType::kInt64).Finish1();
  EXPECT_THAT(ConstantValue(wide)->ToVector<int64_t>(), ElementsAre(4, 5));
  EXPECT_FALSE(ConstantValue(Op1("Shape", batch_)).has_value());
  EXPECT_FALSE(ConstantValue(Op1("Size", batch_)).has_value());
  EXPECT_FALSE(ConstantValue(Op1("Rank", any_)).has_value());
  EXPECT_FALSE(ConstantValue(image_).has_value());
}

TEST_F(ConstantValueTest, StridedSlices) {
  const Output x = Ints({10, 11, 12, 13, 14});
  EXPECT_THAT(Values(Slice(x, 1, 3, 1, 0, 0, 0)), ElementsAre(11, 12));
  EXPECT_THAT(Values(Slice(x, -2, 0, 1, 0, 1, 0)), ElementsAre(13, 14));
  EXPECT_THAT(Values(Slice(x, 0, -1, 2, 0, 0, 0)), ElementsAre(10, 12));
  EXPECT_THAT(Values(Slice(x, 0, 0, -1, 1, 1, 0)), ElementsAre(14, 13, 12, 11, 10));
  EXPECT_THAT(Values(Slice(x, 0, 99, 1, 0, 0, 0)), ElementsAre(10, 11, 12, 13, 14));
  EXPECT_THAT(Values(Slice(x, 3, 1, 1, 0, 0, 0)), ElementsAre());
  EXPECT_EQ(ConstantValue(Slice(x, -1, 0, 1, 0, 0, 1))->scalar<int32_t>(), 14);
  EXPECT_FALSE(ConstantValue(Slice(x, 9, 10, 1, 0, 0, 1)).has_value());
  EXPECT_EQ(ConstantValue(Slice(Op1("Shape", batch_), 1, 2, 1, 0, 0, 1))->scalar<int32_t>(), 28);
  EXPECT_FALSE(ConstantValue(Slice(Op1("Shape", batch_), 0, 1, 1, 0, 0, 1)).has_value());
}

TEST_F(ConstantValueTest, ShapesMayBePartlyKnown) {
  const auto reshaped = [&](Output shape) {
    return graph_.Op("TestReshape").Input(image_).Input(shape).Finish1().shape().ToString();
  };
  EXPECT_EQ(reshaped(Ints({2, -1})), "[2,?]");
  EXPECT_EQ(reshaped(Op1("Shape", batch_)), "[?,28,27]");
  const Output rows = Slice(Op1("Shape", batch_), 0, 1, 1, 0, 0, 1);
  EXPECT_EQ(reshaped(graph_.Op("Pack").Inputs({rows, Int(10)}).Finish1()), "[?,10]");
  EXPECT_EQ(reshaped(TestInput(graph_, DType::kInt32, Shape{2})), "[?,?]");
  EXPECT_EQ(reshaped(TestInput(graph_, DType::kInt32, Shape{-1})), "<unknown>");
  EXPECT_EQ(reshaped(Op1("Shape", any_)), "<unknown>");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                reshaped(Ints({1, 2, 3, 4, 5, 6, 7, 8, 9}));
              }),
              HasSubstr("TestReshape"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { reshaped(Ints({2, -7})); }), HasSubstr("-7"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { reshaped(Int(2)); }), HasSubstr("int32[]"));
}

TEST_F(ConstantValueTest, WorkIsBounded) {
  Output x = Int(1);
  for (int i = 0; i < 60; ++i) x = graph_.Op("AddV2").Input(x).Input(x).Finish1();  // 2^60 paths
  EXPECT_FALSE(ConstantValue(x).has_value());
  const Output big = TestConst(graph_, Tensor::Scalar<int64_t>(INT64_MAX));
  EXPECT_FALSE(ConstantValue(graph_.Op("AddV2").Input(big).Input(big).Finish1()).has_value());
}

TEST_F(ConstantValueTest, HandlesAreFollowedToTheirVariable) {
  const Output handle = TestVariable(graph_, Shape{3, 4});
  const Output alias = Op1("Identity", Op1("Identity", handle));
  EXPECT_EQ(&HandleSource(alias), handle.node);
  EXPECT_EQ(HandleShape(alias), (Shape{3, 4}));
  EXPECT_EQ(HandleDType(alias), DType::kFloat32);
  EXPECT_EQ(TestRead(alias).shape(), (Shape{3, 4}));
}

}  // namespace
}  // namespace cohort
