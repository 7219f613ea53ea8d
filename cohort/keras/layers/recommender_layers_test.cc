// Layers of recommenders: what they compute and refuse.
#include "cohort/keras/layers/recommender_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

Tensor Numbers(const Floats& values, const Shape& shape) { return Tensor::FromValues(values, shape); }
Tensor IdRows(const std::vector<int64_t>& ids, const Shape& shape) { return Tensor::FromValues(ids, shape); }

// Row i of the table is (i, 10 i).
const Tensor& Table() {
  static const auto* const table = new Tensor(Numbers({0, 0, 1, 10, 2, 20, 3, 30}, Shape{4, 2}));
  return *table;
}

Floats Reduced(const EmbedReduceOptions& options, const Tensor& ids, const std::optional<Tensor>& weights = {}) {
  std::vector<LayerTensor> inputs = {Input(ids.shape().Sub(1, ids.shape().rank()), {.dtype = DType::kInt64})};
  std::vector<Tensor> x = {ids};
  if (weights) {
    inputs.push_back(Input(weights->shape().Sub(1, weights->shape().rank())));
    x.push_back(*weights);
  }
  Model model(inputs, {EmbedReduce(4, 2, options)(inputs)});
  model.SetWeights({Table()});
  return OutputOf(model, x).ToVector<float>();
}

TEST(EmbedReduceTest, SumsMeansAndRoots) {
  const Tensor ids = IdRows({1, 3, 2, 2}, Shape{2, 2});
  EXPECT_THAT(Reduced({.combiner = "sum"}, ids), ElementsAre(4, 40, 4, 40));
  EXPECT_THAT(Reduced({}, ids), ElementsAre(2, 20, 2, 20));
  EXPECT_THAT(Reduced({.combiner = "sqrtn"}, ids)[0], FloatEq(4 / std::sqrt(2.0f)));
  const Tensor weights = Numbers({1, 3, 0, 0}, Shape{2, 2});
  EXPECT_THAT(Reduced({.combiner = "sum"}, ids, weights), ElementsAre(10, 100, 0, 0));
  EXPECT_THAT(Reduced({}, ids, weights), ElementsAre(2.5f, 25, 0, 0));
  EXPECT_THAT(Reduced({.combiner = "sqrtn"}, ids, weights)[0], FloatEq(10 / std::sqrt(10.0f)));
}

TEST(EmbedReduceTest, PaddingCountsForNothing) {
  const Tensor ids = IdRows({3, 1, 0, 0, 0, 0}, Shape{2, 3});
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    EXPECT_THAT(Floats(Reduced({.combiner = combiner, .padding_idx = 0}, ids))[2], 0) << combiner;
  }
  EXPECT_THAT(Reduced({.padding_idx = 0}, ids), ElementsAre(2, 20, 0, 0));
  EXPECT_THAT(Reduced({.padding_idx = 0}, ids, Numbers({1, 3, 9, 9, 9, 9}, Shape{2, 3})), ElementsAre(1.5f, 15, 0, 0));
}

TEST(EmbedReduceTest, AnEmptyListIsZero) {
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    EXPECT_THAT(Reduced({.combiner = combiner}, IdRows({}, Shape{2, 0})), ElementsAre(0, 0, 0, 0)) << combiner;
  }
}

TEST(EmbedReduceTest, OneIdIsLookedUp) {
  EXPECT_THAT(Reduced({}, IdRows({2, 3}, Shape{2})), ElementsAre(2, 20, 3, 30));
  EXPECT_THAT(Reduced({}, IdRows({2}, Shape{1}), Numbers({5}, Shape{1})), ElementsAre(2, 20));
  EXPECT_THAT(Reduced({.combiner = "sum"}, IdRows({2}, Shape{1}), Numbers({5}, Shape{1})), ElementsAre(10, 100));
}

// A row of nothing but padding must not turn the others into NaN.
TEST(EmbedReduceTest, TrainsOnListsOfDifferentLengths) {
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    Sequential model({Input(Shape{3}, {.dtype = DType::kInt64}),
                      EmbedReduce(4, 2, {.combiner = combiner, .padding_idx = 0}), Dense(1)});
    model.Compile({.optimizer = SGD({.learning_rate = 0.1}), .loss = "mse"});
    const Tensor ids = IdRows({3, 1, 0, 2, 0, 0, 0, 0, 0, 1, 2, 3}, Shape{4, 3});
    const Tensor before = model.GetWeights()[0];
    const History history = model.Fit(ids, Numbers({4, 2, 0, 6}, Shape{4, 1}), {.epochs = 60, .verbose = 0});
    EXPECT_LT(history["loss"].back(), 0.5 * history["loss"].front()) << combiner;
    const Tensor after = model.GetWeights()[0];
    EXPECT_EQ(after.data<float>()[0], before.data<float>()[0]) << "the row of the padding stays as it is";
    EXPECT_NE(after.data<float>()[2], before.data<float>()[2]);
  }
}

TEST(EmbedReduceTest, WhatItRefuses) {
  const auto refusal = [](auto call) { return MessageOf<InvalidArgumentError>(call); };
  EXPECT_THAT(refusal([] { EmbedReduce(4, 0); }), HasSubstr("positive dimensions; got 4 x 0"));
  EXPECT_THAT(refusal([] { EmbedReduce(4, 2, {.combiner = "max"}); }), HasSubstr("got \"max\""));
  EXPECT_THAT(refusal([] { EmbedReduce(4, 2, {.padding_idx = 4}); }), HasSubstr("in [0, 4); got 4"));
  EXPECT_THAT(refusal([] {
                EmbedReduce(4, 2)(Input(Shape{2, 2}, {.dtype = DType::kInt64}));
              }),
              HasSubstr("[batch, n] or [batch]"));
  EXPECT_THAT(refusal([] {
                EmbedReduce(4, 2)({Input(Shape{2}, {.dtype = DType::kInt64}), Input(Shape{3})});
              }),
              HasSubstr("weights of the shape of the ids"));
  EXPECT_THAT(refusal([] { Reduced({}, IdRows({1, 4}, Shape{1, 2})); }), HasSubstr("4 is not in [0, 4)"));
}

TEST(DotInteractionTest, ProductsOfPairs) {
  const Tensor a = Numbers({1, 2}, Shape{1, 2}), b = Numbers({3, 4}, Shape{1, 2}), c = Numbers({5, 6}, Shape{1, 2});
  const auto run = [&](const DotInteractionOptions& options) {
    const std::vector<LayerTensor> inputs = {Input(Shape{2}), Input(Shape{2}), Input(Shape{2})};
    Model model(inputs, {DotInteraction(options)(inputs)});
    return OutputOf(model, {a, b, c}).ToVector<float>();
  };
  EXPECT_THAT(run({}), ElementsAre(11, 17, 39));
  EXPECT_THAT(run({.self_interaction = true}), ElementsAre(5, 11, 25, 17, 39, 61));
  EXPECT_THAT(run({.skip_gather = true}), ElementsAre(0, 0, 0, 11, 0, 0, 17, 39, 0));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                DotInteraction()({Input(Shape{2}), Input(Shape{3})});
              }),
              AllOf(HasSubstr("of one shape"), HasSubstr("[?,3]")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { DotInteraction()(Input(Shape{2})); }),
              HasSubstr("two inputs or more"));
}

TEST(FeatureCrossTest, TheFormulaOfItsPaper) {
  const Tensor x = Numbers({1, 2}, Shape{1, 2});
  const Tensor kernel = Numbers({1, 0, 0, 3}, Shape{2, 2}), bias = Numbers({1, -1}, Shape{2});
  EXPECT_THAT(RunLayer(FeatureCross(), x, {kernel, bias}).ToVector<float>(),
              ElementsAre(1 * (1 + 1) + 1, 2 * (6 - 1) + 2));
  EXPECT_THAT(RunLayer(FeatureCross({.diag_scale = 10, .use_bias = false}), x, {kernel}).ToVector<float>(),
              ElementsAre(1 * (1 + 10) + 1, 2 * (6 + 20) + 2));
  const Tensor down = Numbers({1, 1}, Shape{2, 1}), up = Numbers({1, 2}, Shape{1, 2});
  EXPECT_THAT(RunLayer(FeatureCross({.projection_dim = 1, .use_bias = false}), x, {down, up}).ToVector<float>(),
              ElementsAre(1 * 3 + 1, 2 * 6 + 2));
  const std::vector<LayerTensor> inputs = {Input(Shape{2}), Input(Shape{2})};
  Model two(inputs, {FeatureCross({.use_bias = false})(inputs)});
  two.SetWeights({kernel});
  EXPECT_THAT(OutputOf(two, {Numbers({10, 100}, Shape{1, 2}), x}).ToVector<float>(),
              ElementsAre(10 * 1 + 1, 100 * 6 + 2));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { FeatureCross({.diag_scale = -1}); }),
              HasSubstr("not negative; got -1"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                FeatureCross()({Input(Shape{2}), Input(Shape{3})});
              }),
              HasSubstr("of one shape"));
}

TEST(FeatureCrossTest, TwoCallsShareTheWeights) {
  const LayerRef cross = FeatureCross({.projection_dim = 3});
  const std::vector<LayerTensor> inputs = {Input(Shape{4}), Input(Shape{4})};
  Model model(inputs, {Add()({cross(inputs[0]), cross(inputs[1])})});
  EXPECT_EQ(model.GetWeights().size(), 3u);
}

TEST(RecommenderLayersTest, AModelOfAllIsSaved) {
  const ::cohort::testing::TempFolder folder;
  const LayerTensor ids = Input(Shape{3}, {.dtype = DType::kInt64}), weights = Input(Shape{3});
  const LayerTensor a = EmbedReduce(9, 4, {.combiner = "sqrtn", .padding_idx = 2})({ids, weights});
  const LayerTensor b = EmbedReduce(9, 4, {.embeddings_regularizer = "l2"})(ids);
  const LayerTensor cross = FeatureCross({.projection_dim = 2, .diag_scale = 0.5, .pre_activation = "tanh"})({a, b});
  const LayerTensor all = Concatenate()({cross, DotInteraction({.self_interaction = true})({a, b, cross})});
  Model model({ids, weights}, {Dense(1)(all)});
  const std::vector<Tensor> x = {IdRows({1, 8, 2, 0, 5, 5}, Shape{2, 3}), Numbers({1, 2, 3, 0, 0, 1}, Shape{2, 3})};
  const Floats expected = OutputOf(model, x).ToVector<float>();
  model.Save(folder / "all.keras");
  Model loaded = LoadModel(folder / "all.keras");
  EXPECT_EQ(OutputOf(loaded, x).ToVector<float>(), expected);
}

}  // namespace
}  // namespace cohort::keras
