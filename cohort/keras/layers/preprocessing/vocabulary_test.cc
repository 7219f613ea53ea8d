// What layers are given, learned from data.
#include "cohort/keras/layers/preprocessing/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::keras {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

TEST(VocabularyTest, TheMostFrequentComesFirstThenTheGreater) {
  const Tensor words = Tensor::FromValues(Strings{"b", "a", "c", "b", "d", "c"}, Shape{2, 3});
  EXPECT_THAT(LearnStrings(words), ElementsAre("c", "b", "d", "a"));  // as StringLookup.adapt
  EXPECT_THAT(LearnStrings(words, {.max_tokens = 1}), ElementsAre("c"));
  EXPECT_THAT(LearnIntegers(Tensor::Vector(std::vector<int32_t>{3, -1, 3})), ElementsAre(3, -1));
}

TEST(VocabularyTest, ADatasetIsReadWhole) {
  const auto data = data::Dataset::FromTensorSlices(
                        {Tensor::Vector(std::vector<int64_t>{1, 2, 3, 4}), Tensor::Vector(Strings{"x", "y", "y", "z"})})
                        .Batch(3);
  EXPECT_THAT(LearnStrings(data, {.component = 1}), ElementsAre("y", "z", "x"));
  EXPECT_THAT(LearnIntegers(data), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { LearnStrings(data); }), HasSubstr("expected strings; got int64"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { LearnStrings(data, {.component = 2}); }),
              HasSubstr("in [0, 2); got 2"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { LearnIntegers(data.Repeat()); }), HasSubstr("a dataset that ends"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { LearnIntegers(data, {.max_tokens = -1}); }),
              HasSubstr("max_tokens >= 0"));
}

TEST(VocabularyTest, MomentsOfEachFeature) {
  const Tensor x = Tensor::FromValues(std::vector<float>{1, 1e6f, 2, 1e6f + 1, 3, 1e6f + 2}, Shape{3, 2});
  const Moments all = LearnMoments(x);
  EXPECT_THAT(all.mean, ElementsAre(2, 1000001));
  EXPECT_THAT(all.variance, ElementsAre(DoubleNear(2.0 / 3, 1e-12), DoubleNear(2.0 / 3, 1e-9)));
  const Moments batches = LearnMoments(data::Dataset::FromTensorSlices({x}).Batch(2));
  EXPECT_EQ(batches.mean, all.mean);
  EXPECT_EQ(batches.variance, all.variance);
  EXPECT_THAT(LearnMoments(Tensor::FromValues(std::vector<uint8_t>{0, 2, 4, 6}, Shape{1, 2, 2})).mean,
              ElementsAre(2, 4));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                LearnMoments(Tensor(DType::kFloat32, Shape{0, 2}));
              }),
              HasSubstr("at least one example"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { LearnMoments(Tensor::Vector(Strings{"a"})); }),
              HasSubstr("got string"));
}

}  // namespace
}  // namespace cohort::keras
