// Files of models with layers for sequences: all their options, calls with states, and the places of their weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/files/weights_file.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/recurrent/attention_layers.h"
#include "cohort/keras/layers/recurrent/recurrent_layers.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/arithmetic.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SequenceSavingTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder / name; }
  // Saves the model, loads it, and saves what was loaded. Expects the same configuration, weights and predictions.
  void ExpectSame(Model model, const Tensor& x, const LoadOptions& options = {}) {
    model.Save(Path("one.keras"));
    Model loaded = LoadModel(Path("one.keras"), options);
    loaded.Save(Path("two.keras"));
    EXPECT_EQ(ReadModelArchive(Path("one.keras")).config, ReadModelArchive(Path("two.keras")).config);
    EXPECT_EQ(loaded.WeightNames(), model.WeightNames());
    EXPECT_EQ(loaded.TrainableWeightNames(), model.TrainableWeightNames());
    EXPECT_EQ(loaded.Predict(x).ToVector<float>(), model.Predict(x).ToVector<float>());
  }
  const testing::TempFolder folder;
};

// Doubles its input, and adds a weight.
class Twice final : public Layer {
 public:
  Twice() : Layer("Twice") {}
  Output Call(CallContext& ctx, Output x) const override {
    return x * 2.0f + ctx.weight({.name = "more", .shape = Shape{}, .initializer = "ones"});
  }
};

TEST_F(SequenceSavingTest, AllOptions) {
  const LSTMOptions lstm = {.activation = "relu",
                            .recurrent_activation = "hard_sigmoid",
                            .kernel_initializer = "he_normal",
                            .recurrent_initializer = initializers::Orthogonal(0.5, 3),
                            .unit_forget_bias = false,
                            .kernel_regularizer = "l1",
                            .recurrent_regularizer = "l2",
                            .dropout = 0.25,
                            .recurrent_dropout = 0.125,
                            .seed = 7,
                            .return_sequences = true,
                            .go_backwards = true,
                            .name = "l",
                            .trainable = false};
  const GRUOptions gru = {.recurrent_activation = "tanh",
                          .use_bias = false,
                          .dropout = 0.5,
                          .return_sequences = true,
                          .reset_after = false};
  const SimpleRNNOptions rnn = {
      .activation = "linear", .bias_initializer = "ones", .bias_regularizer = "l1_l2", .return_sequences = true};
  const LayerRef back = GRU(3, {.return_sequences = true, .go_backwards = true, .name = "other"});
  ExpectSame(Sequential({Input(Shape{4, 3}), LSTM(2, lstm), GRU(3, gru), SimpleRNN(2, rnn),
                         Bidirectional(LSTM(3, {.return_sequences = true, .name = "inner"}),
                                       {.merge_mode = "mul", .backward_layer = back, .trainable = false}),
                         Bidirectional(GRU(2, {.return_sequences = true})), TimeDistributed(Dense(4)),
                         Bidirectional(SimpleRNN(2), {.merge_mode = "ave", .name = "b"}), Dense(1)},
                        {.dtype_policy = "mixed_bfloat16"}),
             Counting(Shape{2, 4, 3}, -1, 0.1f));
}

TEST_F(SequenceSavingTest, CallsWithStatesAndAttention) {
  const LayerTensor x = Input(Shape{4, 3});
  const auto first =
      Bidirectional(LSTM(3, {.return_sequences = true, .return_state = true}), {.merge_mode = std::nullopt}).Apply({x});
  ASSERT_EQ(first.size(), 6u);
  const LayerTensor lstm = LSTM(3, {.return_sequences = true})({first[0], first[4], first[3]});
  const LayerTensor gru = GRU(3, {.return_sequences = true})({first[1], first[2]});
  const LayerTensor both =
      Bidirectional(GRU(3, {.return_sequences = true}), {.merge_mode = "sum"})({gru, first[2], first[5]});
  const MultiHeadAttentionOptions options = {.value_dim = 4,
                                             .dropout = 0.25,
                                             .use_bias = false,
                                             .output_shape = 2,
                                             .kernel_initializer = "he_normal",
                                             .kernel_regularizer = "l2",
                                             .seed = 3,
                                             .use_causal_mask = true,
                                             .name = "causal"};
  const LayerRef causal = MultiHeadAttention(2, 3, options);
  const LayerTensor once = causal({lstm, both, gru}), again = causal({gru, lstm, both});
  const LayerTensor scored =
      Attention({.use_scale = true, .score_mode = "concat", .dropout = 0.5, .seed = 2})({once, again});
  const AdditiveAttentionOptions additive = {.use_scale = false, .dropout = 0.5, .use_causal_mask = true};
  const LayerTensor added = AdditiveAttention(additive)({scored, gru, again});
  const LayerTensor end = MultiHeadAttention(1, 2)({added, again});
  ExpectSame(Model({x}, {end}), Counting(Shape{2, 4, 3}, -1, 0.1f));
}

// The places and the order of Keras.
TEST_F(SequenceSavingTest, PlacesOfWeights) {
  const Sequential inner({Input(Shape{6}), Dense(5)}, {.name = "inner"});
  const LayerTensor x = Input(Shape{4, 3});
  const LayerTensor both = Bidirectional(GRU(3, {.return_sequences = true, .name = "mine"}))(x);
  const LayerTensor steps = TimeDistributed(inner.AsLayer())(both);
  Model model({x}, {LSTM(2, {.use_bias = false})(MultiHeadAttention(2, 3)({steps, steps}))});
  model.SaveWeights(Path("places.weights.h5"));
  std::vector<std::string> places;
  for (const WeightGroup& group : DecodeWeights(ReadFile(Path("places.weights.h5")), "places")) {
    if (!group.values.empty()) places.push_back(StrCat(group.path, " ", group.values.size()));
  }
  EXPECT_THAT(places, ::testing::UnorderedElementsAre(
                          "layers/bidirectional/forward_layer/cell 3", "layers/bidirectional/backward_layer/cell 3",
                          "layers/time_distributed/layer/layers/dense 2", "layers/multi_head_attention/query_dense 2",
                          "layers/multi_head_attention/key_dense 2", "layers/multi_head_attention/value_dense 2",
                          "layers/multi_head_attention/output_dense 2", "layers/lstm/cell 2"));
}

TEST_F(SequenceSavingTest, LayersInsideOfLayers) {
  const Sequential inner({Input(Shape{3}), Dense(2), MakeLayer<Twice>()}, {.name = "inner"});
  ExpectSame(Sequential({Input(Shape{4, 3}), TimeDistributed(MakeLayer<Twice>()), TimeDistributed(inner.AsLayer()),
                         TimeDistributed(Dense(2), {.trainable = false}), Flatten(), Dense(1)}),
             Counting(Shape{2, 4, 3}, -1, 0.1f),
             {.custom_layers = {{"Twice", [](const ConfigValue&) { return MakeLayer<Twice>(); }}}});
}

TEST_F(SequenceSavingTest, WhatFilesMayNotAskFor) {
  const auto error = [](const std::string& json) {
    return MessageOf<InvalidArgumentError>([&] { DeserializeLayer(ConfigValue::FromJson(json)); });
  };
  EXPECT_THAT(error(R"({"class_name": "LSTM", "config": {"units": 2, "stateful": true}})"),
              AllOf(HasSubstr("stateful"), HasSubstr("got true")));
  EXPECT_THAT(error(R"({"class_name": "GRU", "config": {"units": 2, "recurrent_constraint": {"a": 1}}})"),
              HasSubstr("recurrent_constraint"));
  EXPECT_THAT(error(R"({"class_name": "TimeDistributed", "config": {"name": "t"}})"), HasSubstr("'layer'"));
  EXPECT_THAT(error(R"({"class_name": "Bidirectional", "config": {"layer": {"class_name": "Dense", "config":
                        {"units": 2}}}})"),
              HasSubstr("got a Dense"));
  EXPECT_THAT(error(R"({"class_name": "MultiHeadAttention", "config": {"num_heads": 1, "key_dim": 2,
                        "attention_axes": [1, 2]}})"),
              HasSubstr("attention_axes"));
  EXPECT_THAT(error(R"({"class_name": "MultiHeadAttention", "config": {"num_heads": 1, "key_dim": 2},
                        "inbound_nodes": [{"args": [], "kwargs": {"use_causal_mask": true}}, {"args": []}]})"),
              HasSubstr("the same use_causal_mask; the calls differ"));
}

}  // namespace
}  // namespace cohort::keras
