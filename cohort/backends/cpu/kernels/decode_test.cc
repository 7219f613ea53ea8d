// What the ops of old input pipelines and models refuse, and what their cases (tests/ops/record_cases.cc) do not see.
#include "cohort/ops/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather_nd.h"
#include "cohort/ops/local_response.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/random.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Interpreter;
using Strings = std::vector<std::string>;

class DecodeTest : public ::testing::Test {
 protected:
  Output Unknown(DType dtype) { return ops::Placeholder(graph_, dtype, Shape::UnknownRank()); }
  std::string Message(Output value, const Interpreter::Feeds& feeds) {
    return MessageOf<InvalidArgumentError>([&] { interpreter_.Run1(value, feeds); });
  }
  Graph graph_;
  Interpreter interpreter_;
};

TEST_F(DecodeTest, RawBytesOfOtherLengthsAreNamed) {
  const Output bytes = Unknown(DType::kString);
  const Output ints = ops::DecodeRaw(bytes, DType::kInt32);
  EXPECT_THAT(Message(ints, {{bytes, Tensor::Scalar("12345")}}), AllOf(HasSubstr("multiple of 4"), HasSubstr("got 5")));
  EXPECT_THAT(Message(ints, {{bytes, Tensor::Vector(Strings{"1234", "12345678"})}}),
              AllOf(HasSubstr("4 bytes in string 0"), HasSubstr("8 in string 1")));
}

TEST_F(DecodeTest, RecordsThatAreWrongAreNamed) {
  const Output lines = Unknown(DType::kString);
  const auto message = [&](const std::string& line) {
    const Output value = ops::DecodeCSV(lines, {Tensor(DType::kInt32, {0}), Tensor::Scalar(1.0f)})[0];
    return Message(value, {{lines, Tensor::Vector(Strings{"1,2", line})}});
  };
  EXPECT_THAT(message("1"), AllOf(HasSubstr("expected 2 fields"), HasSubstr("got 1"), HasSubstr("record 1")));
  EXPECT_THAT(message("1,2,3"), HasSubstr("got 3"));
  EXPECT_THAT(message(",2"), AllOf(HasSubstr("field 0"), HasSubstr("no default")));
  EXPECT_THAT(message("1,two"), AllOf(HasSubstr("float32"), HasSubstr("'two'")));
  EXPECT_THAT(message("1.5,2"), HasSubstr("'1.5'"));
  EXPECT_THAT(message("3000000000,2"), HasSubstr("int32"));
  EXPECT_THAT(message("1\"0\",2"), HasSubstr("no quote"));
  EXPECT_THAT(message("\"1\"0,2"), HasSubstr("a further quote"));
  EXPECT_THAT(message("\"1,2"), HasSubstr("a quote at the end"));
}

TEST_F(DecodeTest, CsvOptionsAreChecked) {
  const Output lines = Unknown(DType::kString);
  const auto message = [&](const ops::DecodeCSVOptions& options) {
    return MessageOf<InvalidArgumentError>([&] {
      ops::DecodeCSV(lines, {Tensor::Scalar(1), Tensor::Scalar(2)}, options);
    });
  };
  EXPECT_THAT(message({.field_delim = ""}), HasSubstr("field_delim"));
  EXPECT_THAT(message({.field_delim = "\""}), HasSubstr("field_delim"));
  EXPECT_THAT(message({.select_cols = {3, 1}}), HasSubstr("3, 1"));
  EXPECT_THAT(message({.select_cols = {1}}), HasSubstr("2 columns"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::DecodeCSV(lines, {}); }), HasSubstr("got none"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ops::DecodeCSV(lines, {Tensor::Vector<float>({1, 2})});
              }),
              HasSubstr("column 0"));
}

TEST_F(DecodeTest, SegmentIdsHaveToAscend) {
  const Output data = Unknown(DType::kFloat32), ids = Unknown(DType::kInt64);
  const Output sums = ops::SegmentSum(data, ids), means = ops::SegmentMean(data, ids);
  for (const auto& [wrong, text] : {std::pair(std::vector<int64_t>{1, 0}, "segment_ids[1] = 0 after 1"),
                                    std::pair(std::vector<int64_t>{-1, 0}, "segment_ids[0] = -1"),
                                    std::pair(std::vector<int64_t>{0, INT64_MAX}, "below 2^48")}) {
    const Interpreter::Feeds feeds = {{data, Tensor::Vector<float>({1, 2})}, {ids, Tensor::Vector(wrong)}};
    EXPECT_THAT(Message(sums, feeds), HasSubstr(text));
    EXPECT_THAT(Message(means, feeds), HasSubstr(text));
  }
  const Interpreter::Feeds scalar = {{data, Tensor::Vector<float>({1, 2})}, {ids, Tensor::Scalar(int64_t{0})}};
  EXPECT_THAT(Message(sums, scalar), HasSubstr("rank 1"));
}

TEST_F(DecodeTest, SparseIndicesAreChecked) {
  const Output indices = Unknown(DType::kInt64), shape = Unknown(DType::kInt64), values = Unknown(DType::kFloat32);
  const Output rest = Unknown(DType::kFloat32);
  const Output dense = ops::SparseToDense(indices, shape, values, rest);
  const auto message = [&](const Tensor& at, const Tensor& what, const Tensor& otherwise) {
    return Message(dense, {{indices, at}, {shape, Tensor::Vector<int64_t>({4})}, {values, what}, {rest, otherwise}});
  };
  const Tensor zero = Tensor::Scalar(0.0f), two = Tensor::Vector<float>({1, 2});
  EXPECT_THAT(message(Tensor::Vector<int64_t>({2, 1}), two, zero), HasSubstr("row 1 comes before row 0"));
  EXPECT_THAT(message(Tensor::Vector<int64_t>({2, 2}), two, zero), HasSubstr("row 1 repeats row 0"));
  EXPECT_THAT(message(Tensor::Vector<int64_t>({2, 4}), two, zero), HasSubstr("4 is not in [0, 4)"));
  EXPECT_THAT(message(Tensor::Vector<int64_t>({1, 2, 3}), two, zero), HasSubstr("or 3 as there are indices"));
  EXPECT_THAT(message(Tensor::FromValues<int64_t>({1, 2}, Shape{1, 2}), two, zero), HasSubstr("[1,2]"));
  EXPECT_THAT(message(Tensor::FromValues<int64_t>({1, 2}, Shape{2, 1, 1}), two, zero), HasSubstr("[2,1,1]"));
  EXPECT_THAT(message(Tensor::Vector<int64_t>({1, 2}), two, Tensor(DType::kFloat32, {0})), HasSubstr("default_value"));
  // A shape with more elements than a number can say.
  const Tensor huge = Tensor::Vector<int64_t>({int64_t{1} << 40, int64_t{1} << 40});
  const Tensor at = Tensor::FromValues<int64_t>({int64_t{1} << 39, 5}, Shape{1, 2});
  EXPECT_THAT(Message(dense, {{indices, at}, {shape, huge}, {values, zero}, {rest, zero}}),
              HasSubstr("fewer than 2^63 elements"));
}

TEST_F(DecodeTest, MultinomialDrawsByProbability) {
  const float none = -std::numeric_limits<float>::infinity();
  const Output logits = ops::Const(graph_, std::vector<float>{none, std::log(3.0f), std::log(1.0f), none}, Shape{1, 4});
  const std::vector<int64_t> drawn = interpreter_.Run1(ops::Multinomial(logits, 4000, 7)).ToVector<int64_t>();
  std::vector<int> counts(4);
  for (const int64_t c : drawn) ++counts.at(static_cast<size_t>(c));
  EXPECT_EQ(counts[0] + counts[3], 0);
  EXPECT_NEAR(counts[1], 3000, 120);
  const Output x = Unknown(DType::kFloat32), n = Unknown(DType::kInt32);
  const Output free = ops::Multinomial(x, n);
  const Tensor one = Tensor::Scalar(int32_t{1});
  EXPECT_THAT(Message(free, {{x, Tensor::Vector<float>({1})}, {n, one}}), HasSubstr("[batch, classes]"));
  EXPECT_THAT(Message(free, {{x, Tensor(DType::kFloat32, {2, 0})}, {n, one}}), HasSubstr("got none"));
  EXPECT_THAT(Message(free, {{x, Tensor(DType::kFloat32, {2, 1})}, {n, Tensor::Scalar(int32_t{-1})}}),
              HasSubstr("got -1"));
}

TEST_F(DecodeTest, LRNTakesImages) {
  const Output x = Unknown(DType::kFloat32);
  EXPECT_THAT(Message(ops::LRN(x), {{x, Tensor(DType::kFloat32, {2, 3})}}), HasSubstr("[2,3]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::LRN(x, {.depth_radius = -1}); }), HasSubstr("got -1"));
}

}  // namespace
}  // namespace cohort
