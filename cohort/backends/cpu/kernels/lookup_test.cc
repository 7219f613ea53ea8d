// Ops that turn categories into indices: known hashes, what they refuse, and threads. tests/ops/index_cases.cc has the
// cases that are compared with TensorFlow.
#include "cohort/ops/lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;
using Strings = std::vector<std::string>;

class LookupTest : public ::testing::Test {
 protected:
  Output Texts(const Strings& texts) { return ops::Const(graph_, texts); }
  Graph graph_;
};

// TensorFlow's documentation has these numbers: tf.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3) and
// tf.strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2]).
TEST_F(LookupTest, HashesAreTensorFlows) {
  EXPECT_THAT(
      Interpreter().Run1(ops::StringToHashBucketFast(Texts({"Hello", "TensorFlow", "2.x"}), 3)).ToVector<int64_t>(),
      ElementsAre(0, 2, 2));
  EXPECT_THAT(Interpreter().Run1(ops::StringToHashBucketStrong(Texts({"Hello", "TF"}), 3, {1, 2})).ToVector<int64_t>(),
              ElementsAre(2, 0));
}

TEST_F(LookupTest, AVocabularyIsAVectorOfDifferentEntries) {
  const Output words = Texts({"a"});
  const auto message = [&](const Tensor& vocabulary) {
    return MessageOf<InvalidArgumentError>([&] { ops::VocabularyLookup(words, vocabulary); });
  };
  EXPECT_THAT(message(Tensor::Vector(Strings{"a", "b", "c", "b"})), HasSubstr("entries 1 and 3 are both \"b\""));
  EXPECT_THAT(message(Tensor::Scalar("a")), HasSubstr("a vector of strings or int64; got string[]"));
  EXPECT_THAT(message(Tensor::Vector(std::vector<float>{1})), HasSubstr("got float32[1]"));
  EXPECT_THAT(message(Tensor::Vector(std::vector<int64_t>{1})),
              AllOf(HasSubstr("a vector of string"), HasSubstr("int64[1]")));
}

// A graph from elsewhere was not checked by VocabularyLookup.
TEST_F(LookupTest, TheKernelRefusesEqualEntries) {
  const Output bad = graph_.Op("VocabularyLookup")
                         .Input(ops::Const(graph_, std::vector<int64_t>{5}))
                         .Attr("vocabulary", Tensor::Vector(std::vector<int64_t>{4, 4}))
                         .Finish1();
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Interpreter().Run1(bad); }),
              HasSubstr("entries 0 and 1 are both \"4\""));
}

TEST_F(LookupTest, AnEmptyVocabularyFindsNothing) {
  EXPECT_THAT(
      Interpreter().Run1(ops::VocabularyLookup(Texts({"a", ""}), Tensor(DType::kString, {0}), 9)).ToVector<int64_t>(),
      ElementsAre(9, 9));
}

TEST_F(LookupTest, WithoutADefaultAnUnknownValueIsNamed) {
  const Tensor words = Tensor::Vector(Strings{"a", "b"});
  const Output x = ops::Placeholder(graph_, DType::kString, Shape{-1});
  const Output places = ops::VocabularyLookup(x, words, std::nullopt);
  EXPECT_THAT(Interpreter().Run1(places, {{x, words}}).ToVector<int64_t>(), ElementsAre(0, 1));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Interpreter().Run1(places, {{x, Tensor::Vector(Strings{"b", "hat", "cap"})}});
              }),
              HasSubstr("values of the vocabulary, which has 2 entries; element 1 is \"hat\""));
}

TEST_F(LookupTest, LargeInputsGiveTheSameOnSeveralThreads) {
  Strings vocabulary, texts;
  for (int i = 0; i < 5000; ++i) vocabulary.push_back("user " + std::to_string(i));
  for (int i = 0; i < 60'000; ++i) texts.push_back("user " + std::to_string(i * 7 % 10'000));
  const Output x = Texts(texts);
  const Tensor table = Tensor::Vector(vocabulary);
  const std::vector<Output> fetches = {ops::VocabularyLookup(x, table), ops::StringToHashBucketFast(x, 1000),
                                       ops::Bucketize(ops::VocabularyLookup(x, table), {0, 100, 2000})};
  const std::vector<Tensor> one = Interpreter(1).Run(fetches), three = Interpreter(3).Run(fetches);
  for (int i = 0; i < 60'000; ++i) {
    const int64_t user = int64_t{i} * 7 % 10'000;
    ASSERT_EQ(one[0].data<int64_t>()[i], user < 5000 ? user : -1) << i;
  }
  EXPECT_EQ(one[0].ToVector<int64_t>(), three[0].ToVector<int64_t>());
  EXPECT_EQ(one[1].ToVector<int64_t>(), three[1].ToVector<int64_t>());
  EXPECT_EQ(one[2].ToVector<int32_t>(), three[2].ToVector<int32_t>());
}

TEST_F(LookupTest, NanIsAboveAllBoundaries) {
  const Output x = ops::Const(graph_, std::vector<float>{std::numeric_limits<float>::quiet_NaN(), 0.5f});
  EXPECT_THAT(Interpreter().Run1(ops::Bucketize(x, {0, 1})).ToVector<int32_t>(), ElementsAre(2, 1));
}

TEST_F(LookupTest, PlacesInSortedRows) {
  const Output rows = ops::Const(graph_, std::vector<float>{0, 1, 1, 2, 5, 5, 6, 7}, Shape{2, 4});
  const Output x =
      ops::Const(graph_, std::vector<float>{1, std::numeric_limits<float>::quiet_NaN(), 5, 9}, Shape{2, 2});
  EXPECT_THAT(Interpreter().Run1(ops::SearchSorted(rows, x)).ToVector<int64_t>(), ElementsAre(1, 0, 0, 4));
  EXPECT_THAT(Interpreter().Run1(ops::SearchSorted(rows, x, true)).ToVector<int64_t>(), ElementsAre(3, 4, 2, 4));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ops::SearchSorted(rows, ops::Const(graph_, std::vector<float>{1}, Shape{1, 1}));
              }),
              HasSubstr("as many rows of values as of sorted_inputs; got shapes [1,1] and [2,4]"));
  // The shapes are known only when the step runs.
  const Output unknown = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, -1});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Interpreter().Run1(ops::SearchSorted(rows, unknown), {{unknown, Tensor(DType::kFloat32, Shape{1, 1})}});
              }),
              HasSubstr("equal numbers of rows"));
}

TEST_F(LookupTest, ArgumentsThatCannotBeAreRefused) {
  const Output x = ops::Const(graph_, 1.0f);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Bucketize(x, {1, 0}); }), HasSubstr("ascending order"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::StringToHashBucketFast(Texts({"a"}), 0); }),
              HasSubstr("num_buckets"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::AsString(x); }), HasSubstr("float32"));
}

}  // namespace
}  // namespace cohort
