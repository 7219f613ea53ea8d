// Ops that move elements: what they refuse, what they share, and threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/slice.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;

Tensor Counting(const Shape& shape) {
  Tensor tensor(DType::kInt32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data<int32_t>()[i] = static_cast<int32_t>(i);
  return tensor;
}

class IndexingTest : public ::testing::Test {
 protected:
  Output Unknown(DType dtype, int rank) { return ops::Placeholder(graph_, dtype, Shape::UnknownDims(rank)); }
  std::string RunMessage(Output value, const Interpreter::Feeds& feeds) {
    return MessageOf<InvalidArgumentError>([&] { interpreter_.Run1(value, feeds); });
  }
  Graph graph_;
  Interpreter interpreter_;
};

TEST_F(IndexingTest, AnIndexOutOfRangeIsNamed) {
  const Output params = Unknown(DType::kInt32, 2), indices = Unknown(DType::kInt32, 1);
  const Output rows = ops::Gather(params, indices);
  for (const int32_t bad : {-1, 3}) {
    EXPECT_THAT(RunMessage(rows, {{params, Counting({3, 2})}, {indices, Tensor::Vector(std::vector<int32_t>{0, bad})}}),
                HasSubstr("indices[1] = " + std::to_string(bad) + " is not in [0, 3)"));
  }
}

TEST_F(IndexingTest, SegmentAndPartitionNumbersOutOfRangeAreNamed) {
  const Output data = Unknown(DType::kFloat32, 1), ids = Unknown(DType::kInt32, 1);
  const Interpreter::Feeds feeds = {{data, Tensor::Vector(std::vector<float>{1, 2})},
                                    {ids, Tensor::Vector(std::vector<int32_t>{0, 5})}};
  EXPECT_THAT(RunMessage(ops::UnsortedSegmentSum(data, ids, ops::Const(graph_, 4)), feeds),
              HasSubstr("segment_ids[1] = 5 is out of range [0, 4)"));
  EXPECT_THAT(RunMessage(ops::DynamicPartition(data, ids, 2)[0], feeds),
              HasSubstr("partitions[1] = 5 is not in [0, 2)"));
}

TEST_F(IndexingTest, ShapesThatDoNotFitAreNamed) {
  const Output x = Unknown(DType::kInt32, 2), y = Unknown(DType::kInt32, 2), shape = Unknown(DType::kInt32, 1);
  EXPECT_THAT(RunMessage(ops::Concat({x, y}, 1), {{x, Counting({2, 3})}, {y, Counting({3, 3})}}),
              AllOf(HasSubstr("[2,3]"), HasSubstr("[3,3]")));
  EXPECT_THAT(
      RunMessage(ops::Reshape(x, shape), {{x, Counting({2, 3})}, {shape, Tensor::Vector(std::vector<int32_t>{4, -1})}}),
      AllOf(HasSubstr("[2,3]"), HasSubstr("[4,?]")));
  EXPECT_THAT(RunMessage(ops::Slice(x, {0, 2}, {1, 2}), {{x, Counting({2, 3})}}),
              HasSubstr("dimension 1 of shape [2,3]"));
  EXPECT_THAT(RunMessage(ops::Transpose(x, shape),
                         {{x, Counting({2, 3})}, {shape, Tensor::Vector(std::vector<int32_t>{1, 1})}}),
              HasSubstr("permutation element 1 is given twice"));
}

TEST_F(IndexingTest, MistakesAreRefusedWhileTheGraphIsBuilt) {
  const Output x = ops::Placeholder(graph_, DType::kInt32, Shape{2, 3});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Reshape(x, {4, 2}); }), HasSubstr("cannot reshape"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Reshape(x, {-1, -1}); }), HasSubstr("only one dimension"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Split(x, 1, 2); }), HasSubstr("2 equal parts"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::StridedSlice(x, {0}, {1}, {0}); }),
              HasSubstr("strides[0] must be non-zero"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::StridedSlice(x, {5}, {6}, {1}, {.shrink_axis_mask = 1}); }),
              HasSubstr("out of bounds"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Pad(x, {{1, 1}}); }), HasSubstr("paddings"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Squeeze(x, {0}); }), HasSubstr("it is not 1"));
}

TEST_F(IndexingTest, WholeRowsShareTheBytesOfTheirTensor) {
  const Output x = ops::Placeholder(graph_, DType::kInt32, Shape{4, 3});
  const Tensor value = Counting({4, 3});
  const std::vector<Output> parts = ops::Split(x, 0, 2);
  const std::vector<Tensor> results = interpreter_.Run(
      {ops::Slice(x, {1, 0}, {2, -1}), parts[1], ops::StridedSlice(x, {-1}, {0}, {1}, {.shrink_axis_mask = 1}),
       ops::Reshape(x, {12}), ops::ExpandDims(x, 0)},
      {{x, value}});
  const auto offset = [&](const Tensor& t) {
    return static_cast<const int32_t*>(t.raw_data()) - value.data<int32_t>();
  };
  EXPECT_EQ(offset(results[0]), 3);
  EXPECT_EQ(offset(results[1]), 6);
  EXPECT_EQ(offset(results[2]), 9);
  EXPECT_EQ(offset(results[3]), 0);
  EXPECT_EQ(offset(results[4]), 0);
}

TEST_F(IndexingTest, ThreadsDoNotChangeResults) {
  const Shape shape{70, 30, 40};
  const Output x = ops::Placeholder(graph_, DType::kInt32, shape);
  const Output indices = ops::Const(graph_, Tensor::Vector(std::vector<int32_t>{5, 69, 0, 33}));
  const std::vector<Output> fetches = {
      ops::Transpose(x, {2, 1, 0}),
      ops::Transpose(x, {0, 2, 1}),
      ops::Reverse(x, {1, 2}),
      ops::Gather(x, indices, 0),
      ops::Gather(x, ops::Const(graph_, Tensor::Vector(std::vector<int32_t>{1, 1, 29})), 1),
      ops::Tile(x, {1, 2, 2}),
      ops::Pad(x, {{1, 0}, {0, 2}, {3, 3}}),
      ops::Concat({x, x}, 2),
      ops::StridedSlice(x, {1, 29, 0}, {70, 0, 40}, {2, -3, 5})};
  const Interpreter::Feeds feeds = {{x, Counting(shape)}};
  const std::vector<Tensor> one = Interpreter(1).Run(fetches, feeds), three = Interpreter(3).Run(fetches, feeds);
  for (size_t i = 0; i < fetches.size(); ++i) {
    EXPECT_EQ(std::memcmp(one[i].raw_data(), three[i].raw_data(), one[i].bytes()), 0) << "fetch " << i;
  }
  // dimension 2 of x is dimension 0 of the first result: element (k, j, i) is (i, j, k) of x.
  EXPECT_EQ(one[0].data<int32_t>()[(7 * 30 + 11) * 70 + 13], (13 * 30 + 11) * 40 + 7);
}

TEST_F(IndexingTest, StitchOfAPartitionGivesTheRowsBack) {
  const Output rows = ops::Const(graph_, Counting({5, 2})),
               numbers = ops::Const(graph_, std::vector<int32_t>{2, 0, 1, 0, 2});
  const std::vector<Output> parts = ops::DynamicPartition(rows, numbers, 3);
  const std::vector<Output> places = ops::DynamicPartition(ops::Const(graph_, Counting({5})), numbers, 3);
  EXPECT_THAT(interpreter_.Run1(parts[0]).ToVector<int32_t>(), ElementsAre(2, 3, 6, 7));
  EXPECT_EQ(interpreter_.Run1(ops::DynamicStitch(places, parts)).ToVector<int32_t>(),
            Counting({5, 2}).ToVector<int32_t>());
}

// Sums and products of such numbers would overflow, and then fit by accident.
TEST_F(IndexingTest, NumbersAtTheEndOfTheirRangeAreRefused) {
  const Output x = Unknown(DType::kInt32, 1);
  const Output a = Unknown(DType::kInt64, 1), b = Unknown(DType::kInt64, 1);
  const auto numbers = [](const std::vector<int64_t>& values) { return Tensor::Vector(values); };
  const Tensor four = Counting({4});
  EXPECT_THAT(RunMessage(ops::Slice(x, a, b), {{x, four}, {a, numbers({INT64_MAX})}, {b, numbers({2})}}),
              HasSubstr("leaves dimension 0"));
  EXPECT_THAT(RunMessage(ops::Tile(x, a), {{x, four}, {a, numbers({int64_t{1} << 62})}}), HasSubstr("too large"));
  const Node* split = graph_.Op("SplitV").Input(x).Input(a).Input(ops::Const(graph_, 0)).Attr("num_split", 5).Finish();
  const int64_t quarter = int64_t{1} << 62;  // four of them are 0 in 64 bits
  EXPECT_THAT(RunMessage(split->output(0), {{x, four}, {a, numbers({quarter, quarter, quarter, quarter, 4})}}),
              HasSubstr("do not add up"));
  const Output empty = Unknown(DType::kInt32, 1);
  EXPECT_THAT(
      RunMessage(ops::Reshape(empty, a), {{empty, Counting({0})}, {a, numbers({int64_t{1} << 32, int64_t{1} << 32})}}),
      HasSubstr("cannot be counted"));
  // The step from the only element of a slice leads nowhere, so it may be any number.
  const Output taken = graph_.Op("StridedSlice").Input(x).Input(a).Input(b).Input(a).Finish1();
  EXPECT_EQ(interpreter_.Run1(taken, {{x, four}, {a, numbers({INT64_MAX})}, {b, numbers({4})}}).num_elements(), 0);
}

TEST_F(IndexingTest, ShapeRulesRefuseWhatNoNodeCanBe) {
  const Output x = Unknown(DType::kInt32, 2);
  const auto split = [&](const Tensor& axis, int64_t parts) {
    return MessageOf<InvalidArgumentError>(
        [&] { graph_.Op("Split").Input(ops::Const(graph_, axis)).Input(x).Attr("num_split", parts).Finish(); });
  };
  EXPECT_THAT(split(Tensor(DType::kInt32, Shape{0}), 2), HasSubstr("split_dim must be an integer scalar"));
  EXPECT_THAT(split(Tensor::Scalar(0), 1 << 20), HasSubstr("at most 16384 outputs; got 1048576"));
  const std::vector<int64_t> huge = {int64_t{1} << 62};
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                const Output wide = ops::Placeholder(graph_, DType::kInt32, Shape{4});
                ops::Tile(wide, ops::Const(graph_, Tensor::Vector(huge)));
              }),
              HasSubstr("too large"));
}

}  // namespace
}  // namespace cohort
