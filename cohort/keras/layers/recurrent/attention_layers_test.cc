// MultiHeadAttention, Attention, AdditiveAttention: what they compute, their weights, and what they refuse.
// tests/interop compares them with Keras.
#include "cohort/keras/layers/recurrent/attention_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/testing/throws.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;

// One head of one dimension, whose four kernels are 1: softmax(q k) v.
Floats Attend(const Floats& query, const Floats& value, const Floats& key, const MultiHeadAttentionOptions& options) {
  const LayerTensor q = Input(Shape{static_cast<int64_t>(query.size()), 1});
  const LayerTensor v = Input(Shape{static_cast<int64_t>(value.size()), 1});
  const LayerTensor k = Input(Shape{static_cast<int64_t>(key.size()), 1});
  MultiHeadAttentionOptions all = options;
  all.kernel_initializer = "ones";
  Model model({q, v, k}, {MultiHeadAttention(1, 1, all)({q, v, k})});
  std::vector<Tensor> x;
  for (const Floats& one : {query, value, key}) {
    x.push_back(Tensor::FromValues(one, Shape{1, static_cast<int64_t>(one.size()), 1}));
  }
  return model.PredictAll(ModelData(x, std::vector<Tensor>{})).at(0).ToVector<float>();
}

TEST(AttentionLayersTest, WeighsValuesByTheirKeys) {
  const float e = std::exp(1.0f);
  // Keys 0 and 1; the query 1 weighs them 1 to e, and the query 0 equally.
  EXPECT_THAT(Attend({1, 0}, {10, 20}, {0, 1}, {}), Pointwise(FloatNear(1e-4f), Floats{(10 + 20 * e) / (1 + e), 15}));
}

TEST(AttentionLayersTest, CausalMaskHidesLaterSteps) {
  const Floats y = Attend({5, 0, 0}, {1, 2, 6}, {0, 9, 9}, {.use_causal_mask = true});
  EXPECT_THAT(y, Pointwise(FloatNear(1e-5f), Floats{1, 1.5f, 3}));
  EXPECT_THAT(Attend({0, 0}, {1, 2, 6}, {0, 0, 0}, {.use_causal_mask = true}),
              Pointwise(FloatNear(1e-5f), Floats{1, 1.5f}));
}

TEST(AttentionLayersTest, WeightsAndShapes) {
  const LayerTensor query = Input(Shape{5, 4}), value = Input(Shape{3, 6}), key = Input(Shape{3, 2});
  const LayerRef layer = MultiHeadAttention(2, 7, {.value_dim = 8, .name = "a"});
  const LayerTensor y = layer({query, value, key});
  EXPECT_EQ(y.shape(), (Shape{-1, 5, 4}));
  Model model({query, value, key}, {y});
  std::vector<std::string> weights;
  for (size_t i = 0; i < model.WeightNames().size(); ++i) {
    weights.push_back(model.WeightNames()[i] + model.GetWeights()[i].shape().ToString());
  }
  EXPECT_THAT(weights, ElementsAre("a/query/kernel[4,2,7]", "a/query/bias[2,7]", "a/key/kernel[2,2,7]",
                                   "a/key/bias[2,7]", "a/value/kernel[6,2,8]", "a/value/bias[2,8]",
                                   "a/attention_output/kernel[2,8,4]", "a/attention_output/bias[4]"));
  EXPECT_EQ(MultiHeadAttention(2, 3, {.output_shape = 9})({query, query}).shape(), (Shape{-1, 5, 9}));
}

TEST(AttentionLayersTest, DropsScoresInTrainingAlone) {
  const LayerTensor x = Input(Shape{4, 3});
  Model model({x}, {MultiHeadAttention(2, 3, {.dropout = 0.5, .seed = 3})({x, x})}, {.seed = 2});
  model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
  const Tensor data = Counting(Shape{8, 4, 3}, -1, 0.05f);
  EXPECT_EQ(model.Predict(data).ToVector<float>(), model.Predict(data).ToVector<float>());
  EXPECT_NE(model.TrainOnBatch({data, data})[0].second, model.TrainOnBatch({data, data})[0].second);
}

TEST(AttentionLayersTest, AttentionByScores) {
  const LayerTensor q = Input(Shape{1, 2}), v = Input(Shape{2, 1}), k = Input(Shape{2, 2});
  const AttentionOptions concat = {.use_scale = true, .score_mode = "concat"};
  Model model({q, v, k}, {Attention()({q, v, k}), Attention(concat)({q, v, k}),
                          AdditiveAttention({.use_scale = false})({q, v, k})});
  EXPECT_EQ(model.WeightNames().size(), 2u);
  model.SetWeights({Tensor::Scalar(0.5f), Tensor::Scalar(3.0f)});  // scale and concat_score_weight
  const ModelData x(
      {Tensor::FromValues(Floats{1, 2}, Shape{1, 1, 2}), Tensor::FromValues(Floats{10, 20}, Shape{1, 2, 1}),
       Tensor::FromValues(Floats{1, 0, -1, 1}, Shape{1, 2, 2})},
      std::vector<Tensor>{});
  const std::vector<Tensor> y = model.PredictAll(x);
  const auto weighed = [](float first, float second) {
    return (10 * std::exp(first) + 20 * std::exp(second)) / (std::exp(first) + std::exp(second));
  };
  const auto tanh2 = [](float a, float b, float scale) { return std::tanh(scale * a) + std::tanh(scale * b); };
  EXPECT_NEAR(y[0].data<float>()[0], weighed(1, 1), 1e-4);
  EXPECT_NEAR(y[1].data<float>()[0], weighed(3 * tanh2(2, 2, 0.5f), 3 * tanh2(0, 3, 0.5f)), 1e-4);
  EXPECT_NEAR(y[2].data<float>()[0], weighed(tanh2(2, 2, 1), tanh2(0, 3, 1)), 1e-4);
}

TEST(AttentionLayersTest, WhatItRefuses) {
  const LayerTensor x = Input(Shape{4, 3}), y = Input(Shape{5, 3}), flat = Input(Shape{3});
  const auto error = [](const auto& call) { return MessageOf<InvalidArgumentError>(call); };
  EXPECT_THAT(error([] { MultiHeadAttention(0, 2); }), HasSubstr("num_heads=0"));
  EXPECT_THAT(error([] { Attention({.score_mode = "sum"}); }), HasSubstr("dot or concat; got 'sum'"));
  EXPECT_THAT(error([&] { AdditiveAttention()({x, Input(Shape{4, 5})}); }), HasSubstr("the same last dimension"));
  EXPECT_THAT(error([] { MultiHeadAttention(1, 2, {.dropout = 1}); }), HasSubstr("a rate in [0, 1); got 1"));
  EXPECT_THAT(error([&] { MultiHeadAttention(1, 2)(x); }), HasSubstr("{query, value, key}; got 1 inputs"));
  EXPECT_THAT(error([&] { MultiHeadAttention(1, 2)({x, flat}); }), HasSubstr("[batch, steps, features]"));
  EXPECT_THAT(error([&] { MultiHeadAttention(1, 2)({x, x, y}); }), HasSubstr("as many steps as the value"));
}

}  // namespace
}  // namespace cohort::keras
