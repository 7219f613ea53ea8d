// Masks: how values carry them, which layers make, use, pass and drop them, and how losses and metrics count them.
// tests/interop compares trainings of masked models with Keras.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/core/testing/throws.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer_instance.h"
#include "cohort/keras/layers/noise_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/layers/recurrent/attention_layers.h"
#include "cohort/keras/layers/recurrent/recurrent_layers.h"
#include "cohort/keras/layers/sequence_layers.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/reduction.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;

constexpr int kMaskedSteps = 4, kMaskedFeatures = 2;

// Returns the mask of x [batch, steps, features] as 0 and 1, [batch, steps], or -1 for each step if x has no mask.
class MaskOfInput final : public Layer {
 public:
  MaskOfInput() : Layer("MaskOfInput") {}
  Output Call(CallContext& ctx, Output x) const override {
    const Output mask = ctx.mask(0);
    const Output none = ops::Sum(ops::ZerosLike(x), {-1}) - 1.0f;
    return mask.valid() ? ops::Cast(mask, DType::kFloat32) : none;
  }
};

// Returns x itself, with a mask: a step counts if its first feature is at least `least`.
class MaskBelow final : public Layer {
 public:
  explicit MaskBelow(double least) : Layer("MaskBelow"), least_(least) {}
  Output Call(CallContext& ctx, Output x) const override {
    return ctx.WithMask(x, ops::Any(ops::GreaterEqual(x, least_), {-1}));
  }

 private:
  const double least_;
};

// Returns x itself, and says nothing about masks.
class Same final : public Layer {
 public:
  Same() : Layer("Same") {}
  Output Call(CallContext&, Output x) const override { return x; }
};

// Calls a layer inside.
class Around final : public Layer {
 public:
  explicit Around(LayerRef inner) : Layer("Around"), inner_(std::move(inner)) {}
  Output Call(CallContext& ctx, Output x) const override { return ctx.Call(*inner_, x); }

 private:
  const LayerRef inner_;
};

LayerRef Below(double least = 0.5) { return MakeLayer<MaskBelow>(least); }

// Two examples; with Below(), the first one has the mask 1 1 0 1, and the second one 0 1 0 0.
Tensor StepsToMask() {
  return Tensor::FromValues<float>({1, 2, 3, 1, 0.25f, -5, 2, 4, /**/ -1, 0, 2, 2, 0.1f, 0.2f, -3, -7},
                                   Shape{2, kMaskedSteps, kMaskedFeatures});
}

// Returns the mask of what `layers` make of StepsToMask() with the mask of Below(), as MaskOfInput does.
Floats MaskBehind(const std::vector<LayerRef>& layers) {
  const LayerTensor x = Input(Shape{kMaskedSteps, kMaskedFeatures});
  LayerTensor value = Below()(x);
  for (const LayerRef& layer : layers) value = layer(value);
  Model model({x}, {MakeLayer<MaskOfInput>()(value)});
  return model.Predict(StepsToMask()).ToVector<float>();
}

TEST(MasksTest, LayersOfTheProgramMakeAndReadMasks) {
  EXPECT_THAT(MaskBehind({}), ElementsAre(1, 1, 0, 1, 0, 1, 0, 0));
  EXPECT_THAT(MaskBehind({MakeLayer<Same>()}), Each(-1));
  EXPECT_THAT(MaskBehind({MakeLayer<Around>(Dense(3))}), ElementsAre(1, 1, 0, 1, 0, 1, 0, 0));
  EXPECT_THAT(MaskBehind({MakeLayer<Around>(MakeLayer<Same>())}), Each(-1));
}

TEST(MasksTest, LayersPassOrDropThem) {
  for (const LayerRef& layer :
       {Dense(3), Activation("tanh"), Dropout(0.5), ReLU(), LeakyReLU(), PReLU(), ELU(), Rescaling(2.0),
        LayerNormalization(), BatchNormalization(), UnitNormalization(), GaussianNoise(0.5), SpatialDropout1D(0.5),
        Masking({.mask_value = 77}), TimeDistributed(Dense(2)), LSTM(2, {.return_sequences = true}),
        Bidirectional(GRU(2, {.return_sequences = true})),
        Bidirectional(GRU(2, {.return_sequences = true}), {.merge_mode = "sum"})}) {
    const bool makes_its_own = layer->class_name() == "Masking";
    const Floats passed = MaskBehind({layer});
    EXPECT_THAT(passed, makes_its_own ? ElementsAre(1, 1, 1, 1, 1, 1, 1, 1) : ElementsAre(1, 1, 0, 1, 0, 1, 0, 0))
        << layer->class_name();
  }
  EXPECT_THAT(MaskBehind({Conv1D(2, 1)}), Each(-1));
  EXPECT_THAT(MaskBehind({Permute({1, 2})}), Each(-1));
  EXPECT_THAT(MaskBehind({LSTM(2), RepeatVector(kMaskedSteps)}), Each(-1));
}

TEST(MasksTest, AnInputDoesNotGetTheMaskThatALayerGivesItsResult) {
  const LayerTensor x = Input(Shape{kMaskedSteps, kMaskedFeatures});
  const LayerRef mask_of = MakeLayer<MaskOfInput>();
  Model model({x}, {mask_of(Below(0.5)(x)), mask_of(Below(2.5)(x)), mask_of(x), mask_of(Below(2.5)(Below(0.5)(x)))});
  const std::vector<Tensor> masks =
      model.PredictAll(ModelData(std::vector<Tensor>{StepsToMask()}, std::vector<Tensor>{}));
  EXPECT_THAT(masks[0].ToVector<float>(), ElementsAre(1, 1, 0, 1, 0, 1, 0, 0));
  EXPECT_THAT(masks[1].ToVector<float>(), ElementsAre(0, 1, 0, 1, 0, 0, 0, 0));
  EXPECT_THAT(masks[2].ToVector<float>(), Each(-1));
  EXPECT_THAT(masks[3].ToVector<float>(), ElementsAre(0, 1, 0, 1, 0, 0, 0, 0));
}

TEST(MasksTest, MasksThatDoNotFitAreRefused) {
  class Wrong final : public Layer {
   public:
    explicit Wrong(bool is_bool) : Layer("Wrong"), is_bool_(is_bool) {}
    Output Call(CallContext& ctx, Output x) const override {
      return ctx.WithMask(x, is_bool_ ? ops::NotEqual(ops::ExpandDims(x, -1), 0) : ops::Sum(x, {-1}));
    }
    const bool is_bool_;
  };
  for (const bool is_bool : {false, true}) {
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                  MakeLayer<Wrong>(is_bool)(Input(Shape{3, 2}));
                }),
                HasSubstr("expected in layer"));
  }
}

TEST(MasksTest, AModelWithoutMasksHasNoNodesForThem) {
  const auto ops_of = [](const LayerRef& embedding) {
    Graph graph;
    WeightStore store(graph);
    LayerInstance instance(store, LayerInstance::Options{});
    Output value = ops::Placeholder(graph, DType::kInt64, Shape{-1, 3});
    for (const LayerRef& layer : {embedding, Dropout(0.5), GRU(2, {.return_sequences = true}), Bidirectional(LSTM(2)),
                                  RepeatVector(3), GlobalAveragePooling1D(), Dense(2)}) {
      value = instance.Add(*layer, instance.NameOf(*layer, ""), {value}).at(0);
    }
    int masking = 0;
    for (const auto& node : graph.nodes()) {
      for (const char* op : {"NotEqual", "SelectV2", "Identity", "ZerosLike", "LogicalOr"}) {
        masking += node->op_name() == op ? 1 : 0;
      }
    }
    return masking;
  };
  EXPECT_EQ(ops_of(Embedding(5, 2)), 0);
  EXPECT_GT(ops_of(Embedding(5, 2, {.mask_zero = true})), 0);
}

TEST(MasksTest, Embedding) {
  const LayerTensor x = Input(Shape{3}, {.dtype = DType::kInt64});
  const LayerTensor rows = Embedding(4, 2, {.mask_zero = true})(x);
  Model model({x}, {MakeLayer<MaskOfInput>()(rows)});
  const Tensor ids = Tensor::FromValues<int64_t>({0, 3, 1, 2, 0, 0}, Shape{2, 3});
  EXPECT_THAT(model.Predict(ids).ToVector<float>(), ElementsAre(0, 1, 1, 1, 0, 0));
}

TEST(MasksTest, Masking) {
  const LayerTensor x = Input(Shape{3, 2});
  const LayerTensor masked = Masking({.mask_value = 7})(x);
  Model model({x}, {masked, MakeLayer<MaskOfInput>()(masked)});
  const std::vector<Tensor> results = model.PredictAll(
      ModelData({Tensor::FromValues<float>({7, 7, 7, 1, 0, 0}, Shape{1, 3, 2})}, std::vector<Tensor>{}));
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(0, 0, 7, 1, 0, 0));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(0, 1, 1));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Masking()(Input(Shape{})); }), HasSubstr("[batch, ..., features]"));
}

// Returns the result of `layer` for the first example of StepsToMask() with its mask 1 1 0 1, and for the sequence of
// the steps that count, from the same weights.
std::pair<Floats, Floats> WithAndWithoutMasked(const LayerRef& layer) {
  const LayerTensor x = Input(Shape{kMaskedSteps, kMaskedFeatures}),
                    y = Input(Shape{kMaskedSteps - 1, kMaskedFeatures});
  Model model({x, y}, {layer(Below()(x)), layer(y)});
  const Tensor some = Tensor::FromValues<float>({1, 2, 3, 1, 2, 4}, Shape{1, kMaskedSteps - 1, kMaskedFeatures});
  const Tensor all = Tensor::FromValues<float>({1, 2, 3, 1, 0.25f, -5, 2, 4}, Shape{1, kMaskedSteps, kMaskedFeatures});
  const std::vector<Tensor> results = model.PredictAll(ModelData({all, some}, std::vector<Tensor>{}));
  return {results[0].ToVector<float>(), results[1].ToVector<float>()};
}

TEST(MasksTest, RecurrentLayersSkipMaskedSteps) {
  for (const bool backwards : {false, true}) {
    for (const LayerRef& layer : {LSTM(2, {.go_backwards = backwards}), GRU(2, {.go_backwards = backwards}),
                                  GRU(2, {.go_backwards = backwards, .reset_after = false}),
                                  SimpleRNN(2, {.go_backwards = backwards}), Bidirectional(LSTM(2))}) {
      const auto [masked, shorter] = WithAndWithoutMasked(layer);
      EXPECT_THAT(masked, Pointwise(FloatNear(1e-6f), shorter)) << layer->class_name() << backwards;
    }
  }
}

TEST(MasksTest, MaskedStepsRepeatTheOutputOrGiveZeros) {
  for (const bool zeros : {false, true}) {
    const auto [masked, shorter] =
        WithAndWithoutMasked(SimpleRNN(1, {.return_sequences = true, .zero_output_for_mask = zeros}));
    EXPECT_THAT(masked,
                Pointwise(FloatNear(1e-6f), Floats{shorter[0], shorter[1], zeros ? 0 : shorter[1], shorter[2]}));
    const auto [turned, less] =
        WithAndWithoutMasked(GRU(1, {.return_sequences = true, .go_backwards = true, .zero_output_for_mask = zeros}));
    EXPECT_THAT(turned, Pointwise(FloatNear(1e-6f), Floats{less[0], zeros ? 0 : less[0], less[1], less[2]}));
  }
  // The last step of the second example is masked, and so are all steps of a third one.
  const Tensor x = Tensor::FromValues<float>({1, 0, 0, 0}, Shape{2, 2, 1});
  Sequential last({Input(Shape{2, 1}), Masking(), SimpleRNN(1, {.zero_output_for_mask = true})});
  EXPECT_THAT(last.Predict(x).ToVector<float>(), ElementsAre(0, 0));
  Sequential kept(
      {Input(Shape{2, 1}), Masking(), SimpleRNN(1, {.kernel_initializer = "ones", .bias_initializer = "ones"})});
  EXPECT_THAT(kept.Predict(x).ToVector<float>(), ElementsAre(FloatNear(std::tanh(2.0f), 1e-6f), 0));
}

TEST(MasksTest, BidirectionalSequencesHaveZerosInMaskedSteps) {
  const auto [masked, shorter] = WithAndWithoutMasked(Bidirectional(LSTM(1, {.return_sequences = true})));
  Floats expected = shorter;
  expected.insert(expected.begin() + 4, {0, 0});
  EXPECT_THAT(masked, Pointwise(FloatNear(1e-6f), expected));
}

TEST(MasksTest, InitialStatesTurnTheMaskOffAsInKeras) {
  const LayerTensor x = Input(Shape{kMaskedSteps, kMaskedFeatures}), h = Input(Shape{2});
  const LayerRef layer = SimpleRNN(2);
  Model model({x, h}, {layer({Below()(x), h}), layer({x, h})});
  const std::vector<Tensor> results =
      model.PredictAll(ModelData({StepsToMask(), Counting(Shape{2, 2}, 0.1f, 0.1f)}, std::vector<Tensor>{}));
  EXPECT_EQ(results[0].ToVector<float>(), results[1].ToVector<float>());
}

TEST(MasksTest, OneInfiniteStepIsNotMultipliedByZero) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::FromValues<float>({inf}, Shape{1, 1, 1});
  const std::vector<Tensor> weights = {Counting(Shape{1, 1}, 1), Counting(Shape{1, 1}, 1), Counting(Shape{1}, 0)};
  EXPECT_THAT(RunLayer(SimpleRNN(1), x, weights).ToVector<float>(), ElementsAre(1));
}

TEST(MasksTest, MeanOfTheStepsThatCount) {
  Sequential model({Input(Shape{3, 2}), Masking(), GlobalAveragePooling1D()});
  const Tensor x = Tensor::FromValues<float>({1, 2, 0, 0, 3, 6, 0, 0, 0, 0, 0, 0}, Shape{2, 3, 2});
  // As no step of the second example counts, its mean is 0.
  EXPECT_THAT(model.Predict(x).ToVector<float>(), ElementsAre(2, 4, 0, 0));
}

TEST(MasksTest, Softmax) {
  const LayerTensor x = Input(Shape{3});
  class Masked final : public Layer {
   public:
    Masked() : Layer("Masked") {}
    Output Call(CallContext& ctx, Output x) const override { return ctx.WithMask(x, ops::NotEqual(x, 0)); }
  };
  Model model({x}, {Softmax()(MakeLayer<Masked>()(x))});
  const Tensor scores = Tensor::FromValues<float>({2, 0, 2, 0, 0, 0}, Shape{2, 3});
  EXPECT_THAT(model.Predict(scores).ToVector<float>(), ElementsAre(0.5f, 0, 0.5f, 0, 0, 0));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Sequential({Input(Shape{3, 2}), Masking(), Softmax()}).Predict(Counting(Shape{1, 3, 2}));
              }),
              HasSubstr("expected a mask of the rank of the input"));
}

// Returns the results of an attention layer whose value has a masked step at the end, and of one without this step. The
// second step of the query is masked.
std::pair<Floats, Floats> Attended(const LayerRef& layer) {
  const LayerTensor q = Input(Shape{2, 2}), v = Input(Shape{3, 2}), w = Input(Shape{2, 2});
  Model model({q, v, w}, {layer({Below()(q), Below()(v)}), layer({q, w})});
  const Tensor query = Tensor::FromValues<float>({1, -1, 0.1f, 0.2f}, Shape{1, 2, 2});
  const Tensor value = Tensor::FromValues<float>({1, 2, 0.5f, -1, -4, 0.2f}, Shape{1, 3, 2});
  const Tensor less = Tensor::FromValues<float>({1, 2, 0.5f, -1}, Shape{1, 2, 2});
  const std::vector<Tensor> results = model.PredictAll(ModelData({query, value, less}, std::vector<Tensor>{}));
  return {results[0].ToVector<float>(), results[1].ToVector<float>()};
}

TEST(MasksTest, AttentionLeavesMaskedStepsOut) {
  for (const LayerRef& layer : {Attention(), AdditiveAttention(), Attention({.use_causal_mask = true})}) {
    const auto [masked, shorter] = Attended(layer);
    EXPECT_THAT(masked, Pointwise(FloatNear(1e-5f), Floats{shorter[0], shorter[1], 0, 0})) << layer->class_name();
  }
  for (const bool causal : {false, true}) {
    for (const double dropout : {0.0, 0.5}) {
      const auto [masked, shorter] = Attended(
          MultiHeadAttention(2, 3, {.dropout = dropout, .bias_initializer = "ones", .use_causal_mask = causal}));
      EXPECT_THAT(Floats(masked.begin(), masked.begin() + 2),
                  Pointwise(FloatNear(1e-5f), Floats(shorter.begin(), shorter.begin() + 2)));
      // The bias alone, or more.
      const bool is_bias = masked[2] == 1 && masked[3] == 1;
      EXPECT_EQ(is_bias, dropout > 0);
    }
  }
}

TEST(MasksTest, MergingLayers) {
  const Tensor x = Tensor::FromValues<float>({1, 1, -1, -1}, Shape{1, 4, 1});  // mask 1 1 0 0
  const Tensor y = Tensor::FromValues<float>({2, -2, 2, -2}, Shape{1, 4, 1});  // mask 1 0 1 0
  const auto merged = [&](const LayerRef& layer, bool both) {
    const LayerTensor a = Input(Shape{4, 1}), b = Input(Shape{4, 1});
    const LayerTensor value = layer({Below()(a), both ? Below()(b) : b});
    Model model({a, b}, {value, MakeLayer<MaskOfInput>()(value)});
    const std::vector<Tensor> results = model.PredictAll(ModelData({x, y}, std::vector<Tensor>{}));
    return std::pair(results[0].ToVector<float>(), results[1].ToVector<float>());
  };
  EXPECT_EQ(merged(Add(), true), std::pair(Floats({3, -1, 1, -3}), Floats({1, 1, 1, 0})));
  EXPECT_EQ(merged(Add(), false), std::pair(Floats({3, -1, 1, -3}), Floats({-1, -1, -1, -1})));
  EXPECT_EQ(merged(Multiply(), true), std::pair(Floats({2, 1, 2, 0}), Floats({1, 1, 1, 0})));
  EXPECT_EQ(merged(Multiply(), false), std::pair(Floats({2, -2, 2, -2}), Floats({-1, -1, -1, -1})));
  EXPECT_EQ(merged(Maximum(), true), std::pair(Floats({2, 1, 2, -1}), Floats({1, 1, 1, 0})));
  EXPECT_EQ(merged(Minimum(), true).first, Floats({1, 1, 2, -1}));
  EXPECT_EQ(merged(Concatenate(), true).second, Floats({1, 1, 1, 0}));
  EXPECT_EQ(merged(Concatenate(), false).second, Floats({1, 1, 1, 1}));
  EXPECT_EQ(merged(Concatenate({.axis = 1}), true).second, Floats({1, 1, 0, 0, 1, 0, 1, 0}));
  EXPECT_EQ(merged(Concatenate({.axis = -2}), false).second, Floats({1, 1, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(merged(Dot(1), true).second.size(), 1u);
}

TEST(MasksTest, TimeDistributedReadsPartsOfSteps) {
  const LayerTensor x = Input(Shape{2, 3}, {.dtype = DType::kInt64});
  const LayerTensor words = Embedding(4, 1, {.embeddings_initializer = "ones", .mask_zero = true})(x);
  const LayerTensor sums = TimeDistributed(GlobalAveragePooling1D())(words);
  const LayerRef mask_of = MakeLayer<MaskOfInput>();
  Model model({x}, {sums, mask_of(sums), mask_of(TimeDistributed(Dense(2))(words))});
  const std::vector<Tensor> results = model.PredictAll(
      ModelData({Tensor::FromValues<int64_t>({1, 2, 0, 0, 0, 0}, Shape{1, 2, 3})}, std::vector<Tensor>{}));
  EXPECT_THAT(results[0].ToVector<float>(), ElementsAre(1, 0));
  EXPECT_THAT(results[1].ToVector<float>(), ElementsAre(1, 0));
  EXPECT_THAT(results[2].ToVector<float>(), ElementsAre(1, 1, 0, 0, 0, 0));
}

TEST(MasksTest, BatchNormalizationUsesTheMomentsOfTheStepsThatCount) {
  Sequential model({Input(Shape{2, 1}), Masking(), BatchNormalization({.momentum = 0})});
  model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
  model.TrainOnBatch(ModelData(Tensor::FromValues<float>({1, 0, 5, 0}, Shape{2, 2, 1}), Counting(Shape{2, 2, 1})));
  const std::vector<Tensor> weights = model.GetWeights();  // gamma, beta, mean, variance
  EXPECT_THAT(weights[2].ToVector<float>(), ElementsAre(FloatNear(3, 1e-5f)));
  EXPECT_THAT(weights[3].ToVector<float>(), ElementsAre(FloatNear(4, 1e-5f)));
}

// A model whose outputs are its inputs, [batch, 2 steps, 1], with the mask of Masking.
Sequential Echo(LossPtr loss, const ModelOptions& options = {}) {
  Sequential model({Input(Shape{2, 1}), Masking()}, options);
  model.Compile({.loss = {loss}, .metrics = {"mse", RootMeanSquaredError()}, .weighted_metrics = {"mae"}});
  return model;
}

TEST(MasksTest, LossesAndMeansLeaveMaskedStepsOut) {
  // The squares of the errors are 1, 4 | 9, 0 | 25, 16. The second step of the first two examples is masked.
  const Tensor x = Tensor::FromValues<float>({1, 0, 2, 0, 3, 4}, Shape{3, 2, 1});
  const Tensor y = Tensor::FromValues<float>({0, 2, 5, 0, 8, 8}, Shape{3, 2, 1});
  const Tensor weight = Tensor::Vector<float>({1, 2, 0.5f});
  const auto logs = [&](Reduction reduction, const Tensor& weights) {
    return Echo(MeanSquaredError({.reduction = reduction})).Evaluate(ModelData(x, y, weights));
  };
  const auto value = [](const Logs& logs, const std::string& name) {
    for (const auto& [key, number] : logs) {
      if (key == name) return number;
    }
    return std::nan("");
  };
  const Logs plain = logs(Reduction::kSumOverBatchSize, {});
  EXPECT_NEAR(value(plain, "loss"), 51.0 / 4, 1e-5);
  EXPECT_NEAR(value(plain, "mse"), 51.0 / 4, 1e-5);
  EXPECT_NEAR(value(plain, "root_mean_squared_error"), std::sqrt(55.0 / 6), 1e-5);
  const Logs weighted = logs(Reduction::kSumOverBatchSize, weight);
  EXPECT_NEAR(value(weighted, "loss"), (1 + 18 + 20.5) / 4, 1e-5);
  EXPECT_NEAR(value(weighted, "mse"), 51.0 / 4, 1e-5);
  EXPECT_NEAR(value(weighted, "mae"), (1 + 6 + 4.5) / 4, 1e-5);
  EXPECT_NEAR(value(logs(Reduction::kMeanWithSampleWeight, weight), "loss"), (1 + 18 + 20.5) / 4, 1e-5);
  EXPECT_NEAR(value(logs(Reduction::kSum, weight), "loss"), 1 + 18 + 20.5, 1e-5);
}

TEST(MasksTest, ABatchInWhichNothingCountsHasNoLoss) {
  const Tensor zeros = Counting(Shape{2, 2, 1}, 0, 0), ones = Counting(Shape{2, 2, 1}, 1, 0);
  EXPECT_EQ(Echo(MeanSquaredError()).Evaluate(zeros, ones)[0].second, 0);
}

TEST(MasksTest, ReplicasShareTheStepsThatCount) {
  const Tensor x = Tensor::FromValues<float>({1, 0, 2, 3, 3, 4, 1, 0}, Shape{4, 2, 1});
  const Tensor y = Counting(Shape{4, 2, 1}, 0, 0.5f);
  const auto loss = [&](const distribute::StrategyPtr& strategy) {
    return Echo(MeanSquaredError(), {.strategy = strategy}).Evaluate(x, y, {.batch_size = 4})[0].second;
  };
  EXPECT_NEAR(loss(distribute::MirroredOnCpus(2)), loss(nullptr), 1e-6);
}

TEST(MasksTest, TargetsThatLackTheLastAxisAreRefused) {
  const Tensor x = Counting(Shape{2, 2, 1}, 1);
  Sequential model = Echo(MeanSquaredError());
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Evaluate(x, Counting(Shape{2, 2}));
              }),
              HasSubstr("a value for each step"));
}

TEST(MasksTest, MixedPrecision) {
  Sequential model({Input(Shape{kMaskedSteps, kMaskedFeatures}), Below(), GRU(3, {.return_sequences = true}), Dense(1)},
                   {.dtype_policy = "mixed_bfloat16"});
  model.Compile({.optimizer = SGD({.learning_rate = 0.1}), .loss = "mse"});
  // Only masked steps have targets that are far away.
  Tensor y = Counting(Shape{2, kMaskedSteps, 1}, 0, 0);
  y.data<float>()[2] = y.data<float>()[4] = 1e3f;
  const Logs logs = model.TrainOnBatch(ModelData(StepsToMask(), y));
  EXPECT_LT(logs[0].second, 10);
}

}  // namespace
}  // namespace cohort::keras
