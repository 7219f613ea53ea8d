#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/dataset.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/serialize.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/testing/drain.h"
#include "cohort/proto/example.pb.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Batches = std::vector<std::vector<int64_t>>;

// Element n is (n times the number n, int64 [n]; the number n).
Dataset Vectors(int64_t count) {
  return Dataset::Range(count).Map(
      [](const Element& element) -> Element {
        const auto n = element.at(0).scalar<int64_t>();
        return {Tensor::Vector(std::vector<int64_t>(static_cast<size_t>(n), n)), element.at(0)};
      },
      {{DType::kInt64, Shape{-1}}, {DType::kInt64, Shape()}});
}

// The elements are the tensors.
Dataset Of(const std::vector<Tensor>& tensors) {
  Dataset dataset = Dataset::FromTensors({tensors.front()});
  for (size_t i = 1; i < tensors.size(); ++i) dataset = dataset.Concatenate(Dataset::FromTensors({tensors[i]}));
  return dataset;
}

TEST(PaddedBatchTest, PadsToTheLongestOfTheBatch) {
  const Dataset batches = Vectors(5).PaddedBatch(2);
  EXPECT_EQ(ToString(batches.element_spec()), "(int64[?,?], int64[?])");
  EXPECT_EQ(batches.Cardinality(), 3);
  const auto iterator = batches.MakeIterator();
  std::vector<Shape> shapes;
  Element element;
  while (iterator->Next(&element)) shapes.push_back(element[0].shape());
  EXPECT_THAT(shapes, ElementsAre(Shape{2, 1}, Shape{2, 3}, Shape{1, 4}));
  EXPECT_EQ(Drain(batches), (Batches{{0, 1, 0, 1}, {2, 2, 0, 3, 3, 3, 2, 3}, {4, 4, 4, 4, 4}}));
}

TEST(PaddedBatchTest, PadsToFixedShapesWithValues) {
  const Dataset batches = Vectors(5).PaddedBatch(
      2,
      {.padded_shapes = {{4}, {}}, .padding_values = {Tensor::Scalar(int64_t{-1}), Tensor()}, .drop_remainder = true});
  EXPECT_EQ(ToString(batches.element_spec()), "(int64[2,4], int64[2])");
  EXPECT_EQ(batches.Cardinality(), 2);
  EXPECT_EQ(Drain(batches), (Batches{{-1, -1, -1, -1, 1, -1, -1, -1, 0, 1}, {2, 2, -1, -1, 3, 3, 3, -1, 2, 3}}));
}

TEST(PaddedBatchTest, PadsEachDimensionAndEveryDType) {
  const Dataset matrices =
      Of({Tensor::FromValues<int64_t>({1, 2, 3, 4, 5, 6}, Shape{3, 2}),
          Tensor::FromValues<int64_t>({7, 8, 9}, Shape{1, 3}), Tensor(DType::kInt64, Shape{0, 5})});
  EXPECT_EQ(ToString(matrices.element_spec()), "(int64[?,?])");
  const Dataset pairs = matrices.PaddedBatch(2);
  EXPECT_EQ(Drain(pairs)[0], (std::vector<int64_t>{1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 8, 9, 0, 0, 0, 0, 0, 0}));
  const auto iterator = matrices.PaddedBatch(2, {.padded_shapes = {{-1, 5}}}).MakeIterator();
  EXPECT_EQ(iterator->Next()[0].shape(), (Shape{2, 3, 5}));
  EXPECT_EQ(iterator->Next()[0].shape(), (Shape{1, 0, 5}));

  const Dataset words = Of({Tensor::Vector<std::string>({"a"}), Tensor::Vector<std::string>({"b", "c", "d"})});
  EXPECT_THAT(words.PaddedBatch(2).MakeIterator()->Next()[0].ToVector<std::string>(),
              ElementsAre("a", "", "", "b", "c", "d"));
  const Dataset named = words.PaddedBatch(2, {.padding_values = {Tensor::Scalar("none")}});
  EXPECT_THAT(named.MakeIterator()->Next()[0].ToVector<std::string>(), ElementsAre("a", "none", "none", "b", "c", "d"));
  const Dataset floats = Of({Tensor::Vector<float>({}), Tensor::Vector<float>({1, 2})});
  EXPECT_THAT(
      floats.PaddedBatch(2, {.padding_values = {Tensor::Scalar(0.5f)}}).MakeIterator()->Next()[0].ToVector<float>(),
      ElementsAre(0.5f, 0.5f, 1, 2));
}

// A dimension that the input's spec knows stays known, as it is that of every element.
TEST(PaddedBatchTest, KeepsKnownDimensions) {
  const Dataset rows = Dataset::FromTensorSlices({Tensor::Zeros(DType::kFloat32, Shape{3, 2, 4})});
  const Dataset padded = rows.PaddedBatch(2, {.padded_shapes = {{-1, 6}}});
  EXPECT_EQ(ToString(padded.element_spec()), "(float32[?,2,6])");
  EXPECT_EQ(padded.MakeIterator()->Next()[0].shape(), (Shape{2, 2, 6}));
  EXPECT_EQ(StaticBatchSize(padded.Prefetch(1).Repeat(2)), 2);
}

TEST(PaddedBatchTest, RefusesWhatDoesNotFit) {
  const Dataset vectors = Vectors(5);
  const auto message = [&](const Dataset& dataset, const PaddedBatchOptions& options) {
    return MessageOf<InvalidArgumentError>([&] { dataset.PaddedBatch(2, options); });
  };
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { vectors.PaddedBatch(0); }), HasSubstr("got 0"));
  EXPECT_THAT(message(vectors, {.padded_shapes = {{3}}}), HasSubstr("expected a padded shape for each component"));
  EXPECT_THAT(message(vectors, {.padded_shapes = {{3, 1}, {}}}), AllOf(HasSubstr("int64[?]"), HasSubstr("got [3,1]")));
  EXPECT_THAT(message(Of({Tensor::Vector<int64_t>({1, 2, 3})}), {.padded_shapes = {{2}}}),
              AllOf(HasSubstr("component 0 (int64[3])"), HasSubstr("got [2]"), HasSubstr("or -1")));
  EXPECT_THAT(message(vectors, {.padding_values = {Tensor::Scalar(1.0f), Tensor()}}),
              HasSubstr("expected a scalar of int64 as the padding value of component 0; got float32[]"));
  EXPECT_THAT(message(vectors, {.padding_values = {Tensor(), Tensor::Vector<int64_t>({1})}}),
              HasSubstr("component 1; got int64[1]"));
  EXPECT_THAT(message(vectors, {.padding_values = {Tensor()}}), HasSubstr("got 1 for 2 components"));
}

TEST(PaddedBatchTest, AValueThatIsTooLargeIsAnErrorAndTheNextBatchFollows) {
  const Dataset batches = Vectors(6).PaddedBatch(2, {.padded_shapes = {{2}, {}}});
  const auto iterator = batches.MakeIterator();
  EXPECT_EQ(Values(iterator->Next()), (std::vector<int64_t>{0, 0, 1, 0, 0, 1}));
  EXPECT_THAT(
      MessageOf<DataLossError>([&] { iterator->Next(); }),
      AllOf(HasSubstr("padded shape [2] in component 0; got shape [3]"), HasSubstr("(from stage PaddedBatch(2")));
  EXPECT_THROW(iterator->Next(), DataLossError);
  EXPECT_THROW(iterator->Next(), OutOfRangeError);
}

// The shapes of the elements have an unknown rank.
TEST(PaddedBatchTest, ValuesOfUnknownRankNeedAShape) {
  const Dataset mixed = Dataset::Range(2).Map(
      [](const Element& element) -> Element {
        return {element[0].scalar<int64_t>() == 0 ? Tensor::Vector<int64_t>({5}) : Tensor::Scalar(int64_t{6})};
      },
      {{DType::kInt64, Shape::UnknownRank()}});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { mixed.PaddedBatch(2); }), HasSubstr("give padded_shapes"));
  EXPECT_EQ(Drain(mixed.Take(1).PaddedBatch(2, {.padded_shapes = {{3}}})), (Batches{{5, 0, 0}}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Drain(mixed.PaddedBatch(2, {.padded_shapes = {{3}}})); }),
              AllOf(HasSubstr("rank of its padded shape [3]"), HasSubstr("got shape []")));
}

// Records whose feature "ids" has a variable length cannot be parsed as batches. The two errors that a program meets
// name PaddedBatch, which batches them.
TEST(PaddedBatchTest, ErrorsOfVariableLengthsNameThisStage) {
  std::vector<std::string> records;
  for (int64_t n = 0; n < 3; ++n) {
    proto::Example example;
    auto& ids = *(*example.mutable_features()->mutable_feature())["ids"].mutable_int64_list();
    for (int64_t i = 0; i < n; ++i) ids.add_value(10 * n + i);
    records.push_back(example.SerializeAsString());
  }
  const Dataset serialized = Dataset::FromTensorSlices({Tensor::Vector(records)});
  const std::vector<Feature> features = {{.name = "ids", .dtype = DType::kInt64, .variable_length = true}};
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseExampleDataset(serialized.Batch(2), features); }),
              HasSubstr("parse the records one by one, and call PaddedBatch after that"));
  const Dataset parsed = ParseExampleDataset(serialized, features);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { parsed.Batch(2).MakeIterator()->Next(); }),
              HasSubstr("use PaddedBatch for values of different shapes"));
  EXPECT_EQ(Drain(parsed.PaddedBatch(3)), (Batches{{0, 0, 10, 0, 20, 21}}));
}

TEST(PaddedBatchTest, BatchesOfDifferentWidthsCannotBeCutTogether) {
  const Dataset batches = Vectors(4).Skip(1).PaddedBatch(1);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Rebatch(batches, {2}).MakeIterator()->Next(); }),
              HasSubstr("by the padded_shapes of PaddedBatch"));
  const Dataset fixed = Vectors(4).Skip(1).PaddedBatch(1, {.padded_shapes = {{3}, {}}});
  EXPECT_EQ(Drain(Rebatch(fixed, {2})), (Batches{{1, 0, 0, 2, 2, 0, 1, 2}, {3, 3, 3, 3}}));
}

}  // namespace
}  // namespace cohort::data
