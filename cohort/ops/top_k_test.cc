// Order, and what the ops refuse that order elements or take them by coordinates.
#include "cohort/ops/top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather_nd.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;
using ::testing::IsNan;

class TopKTest : public ::testing::Test {
 protected:
  Output Floats(std::vector<float> values) { return ops::Const(graph_, values); }
  Output Unknown(DType dtype, int rank) { return ops::Placeholder(graph_, dtype, Shape::UnknownDims(rank)); }
  template <typename T>
  std::vector<T> Values(Output value) {
    return Interpreter().Run1(value).ToVector<T>();
  }
  Graph graph_;
};

TEST_F(TopKTest, EqualElementsKeepTheirOrder) {
  const Output x = Floats({1, 3, -0.0f, 3, 0.0f, 1});
  EXPECT_THAT(Values<int32_t>(ops::TopK(x, 6).indices), ElementsAre(1, 3, 0, 5, 2, 4));
  EXPECT_THAT(Values<int32_t>(ops::ArgSort(x)), ElementsAre(2, 4, 0, 5, 1, 3));
  EXPECT_THAT(Values<int32_t>(ops::ArgSort(x, 0, "DESCENDING")), ElementsAre(1, 3, 0, 5, 2, 4));
  EXPECT_THAT(Values<float>(ops::Sort(x)), ElementsAre(0, 0, 1, 1, 3, 3));
}

TEST_F(TopKTest, NanIsTheLargest) {
  const Output x = Floats({1, NAN, INFINITY, NAN});
  EXPECT_THAT(Values<int32_t>(ops::TopK(x, 3).indices), ElementsAre(1, 3, 2));
  EXPECT_THAT(Values<int32_t>(ops::ArgSort(x)), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(Values<int32_t>(ops::ArgSort(x, -1, "DESCENDING")), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(Values<float>(ops::Sort(x)), ElementsAre(1, INFINITY, IsNan(), IsNan()));
  EXPECT_THAT(Values<float>(ops::Sort(x, -1, "DESCENDING")), ElementsAre(IsNan(), IsNan(), INFINITY, 1));
}

TEST_F(TopKTest, RisingOrderHasTheSmallestIntegerFirst) {
  const Output x = ops::Const(graph_, std::vector<int64_t>{0, INT64_MAX, INT64_MIN, 0, INT64_MIN});
  EXPECT_THAT(Values<int32_t>(ops::ArgSort(x)), ElementsAre(2, 4, 0, 3, 1));
  EXPECT_THAT(Values<int64_t>(ops::Sort(x)), ElementsAre(INT64_MIN, INT64_MIN, 0, 0, INT64_MAX));
}

TEST_F(TopKTest, OrdersRowsWhoseShapeIsKnownOnlyInTheStep) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32);
  const Interpreter::Feeds feeds = {{x, Tensor::FromValues(std::vector<float>{2, 1, 2, 3, 3, -1}, Shape{2, 3})}};
  EXPECT_THAT(Interpreter().Run1(ops::ArgSort(x), feeds).ToVector<int32_t>(), ElementsAre(1, 0, 2, 2, 0, 1));
  EXPECT_THAT(Interpreter().Run1(ops::Sort(x), feeds).ToVector<float>(), ElementsAre(1, 2, 2, -1, 3, 3));
}

TEST_F(TopKTest, ManyThreadsGiveTheSame) {
  std::vector<float> values(200'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 1000);
  const Output x = ops::Const(graph_, values, Shape{100, 2000});
  const ops::TopKResult top = ops::TopK(x, 17);
  const std::vector<Tensor> one = Interpreter(1).Run({top.values, top.indices});
  const std::vector<Tensor> four = Interpreter(4).Run({top.values, top.indices});
  EXPECT_EQ(one[0].ToVector<float>(), four[0].ToVector<float>());
  EXPECT_EQ(one[1].ToVector<int32_t>(), four[1].ToVector<int32_t>());
}

TEST_F(TopKTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ops::TopK(Floats({1, 2}), 3);
              }),
              HasSubstr("input must have at least k = 3 columns; got shape [2]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ops::TopK(Floats({1, 2}), -1);
              }),
              HasSubstr("k must not be negative; got -1"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Sort(Floats({1, 2}), -1, "UP"); }), HasSubstr("\"UP\""));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Sort(Floats({1, 2}), 1); }), HasSubstr("out of range"));
  const Output x = Unknown(DType::kFloat32, 1);
  const Output top = ops::TopK(x, 3).values;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Interpreter().Run1(top, {{x, Tensor::Vector(std::vector<float>{1, 2})}});
              }),
              HasSubstr("input must have at least k = 3 columns; got shape [2]"));
}

TEST_F(TopKTest, CoordinatesOutOfRangeAreNamed) {
  const Output params = Unknown(DType::kFloat32, 2), indices = Unknown(DType::kInt32, 2);
  const Interpreter::Feeds feeds = {{params, Tensor(DType::kFloat32, {3, 2})},
                                    {indices, Tensor::FromValues(std::vector<int32_t>{2, 1, 0, 2}, Shape{2, 2})}};
  const std::string expected =
      "indices[1,1] = 2 is not in [0, 2), dimension 1 of the tensor of shape [3,2]; indices have shape [2,2]";
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Interpreter().Run1(ops::GatherNd(params, indices), feeds); }),
              HasSubstr(expected));
  // One vector of coordinates, and coordinates with two leading dimensions.
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Interpreter().Run1(ops::GatherNd(Floats({1, 2}), ops::Const(graph_, std::vector<int32_t>{2})));
              }),
              HasSubstr("indices[0] = 2 is not in [0, 2), dimension 0 of the tensor of shape [2]"));
  const std::vector<int32_t> deep = {0, 0, 0, 1, 1, 0, 1, 1, 2, 0, 2, -1};
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Interpreter().Run1(ops::GatherNd(params, ops::Const(graph_, deep, Shape{2, 3, 2})), feeds);
              }),
              HasSubstr("indices[1,2,1] = -1 is not in [0, 2), dimension 1"));
  const Output put = ops::TensorScatterAdd(params, indices, Floats({1, 2}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Interpreter().Run1(put, feeds); }), HasSubstr(expected));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ops::GatherNd(Floats({1, 2}), ops::Const(graph_, std::vector<int32_t>{0, 0}));
              }),
              AllOf(HasSubstr("2 coordinates each"), HasSubstr("[2]")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ops::ScatterNd(ops::Const(graph_, std::vector<int32_t>{0, 1}, Shape{2, 1}), Floats({1, 2, 3}), {4});
              }),
              HasSubstr("expected updates of shape [2]"));
}

}  // namespace
}  // namespace cohort
