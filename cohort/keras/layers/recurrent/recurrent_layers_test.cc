// LSTM, GRU, SimpleRNN, Bidirectional and TimeDistributed: what they compute, their options, and what they refuse. The
// results are compared with the formulas of the header, written as loops. tests/interop compares them with Keras.
#include "cohort/keras/layers/recurrent/recurrent_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "cohort/core/testing/throws.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/layers/recurrent/attention_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;

Floats Noise(size_t size, float seed) {
  Floats values;
  for (size_t i = 0; i < size; ++i) values.push_back(std::sin(seed + 1.7f * static_cast<float>(i * i % 37)));
  return values;
}
Tensor NoiseOf(const Shape& shape, float seed) {
  return Tensor::FromValues(Noise(static_cast<size_t>(shape.num_elements()), seed), shape);
}
float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// What a layer computes for one example, as loops over elements: x [steps][2], units 2.
constexpr int kFeatures = 2, kUnits = 2, kLength = 3;
struct Loop {
  int gates;
  Tensor kernel = NoiseOf(Shape{kFeatures, gates* kUnits}, 1);
  Tensor recurrent = NoiseOf(Shape{kUnits, gates* kUnits}, 2);
  Tensor bias;
  Tensor x = NoiseOf(Shape{1, kLength, kFeatures}, 4);

  // (x kernel)[column] of a step, and (h recurrent)[column].
  float Of(int step, int column) const {
    float sum = 0;
    for (int i = 0; i < kFeatures; ++i) {
      sum += x.data<float>()[step * kFeatures + i] * kernel.data<float>()[i * gates * kUnits + column];
    }
    return sum;
  }
  float Of(const Floats& h, int column) const {
    float sum = 0;
    for (size_t i = 0; i < kUnits; ++i) {
      sum += h[i] * recurrent.data<float>()[static_cast<int>(i) * gates * kUnits + column];
    }
    return sum;
  }
  float Bias(int index) const { return bias.data<float>()[index]; }
};

// Returns the outputs of all steps. `next` returns h after a step.
Floats Outputs(const std::function<Floats(int step, const Floats& h)>& next, bool backwards = false) {
  Floats outputs, h(kUnits, 0);
  for (int i = 0; i < kLength; ++i) {
    h = next(backwards ? kLength - 1 - i : i, h);
    outputs.insert(outputs.end(), h.begin(), h.end());
  }
  return outputs;
}

Floats LSTMByHand(const Loop& loop, bool backwards = false) {
  Floats c(kUnits, 0);
  return Outputs(
      [&](int step, const Floats& h) {
        Floats result;
        for (int u = 0; u < kUnits; ++u) {
          const auto gate = [&](int g) {
            const int column = g * kUnits + u;
            return loop.Of(step, column) + loop.Of(h, column) + loop.Bias(column);
          };
          float& cell = c[static_cast<size_t>(u)];
          cell = Sigmoid(gate(1)) * cell + Sigmoid(gate(0)) * std::tanh(gate(2));
          result.push_back(Sigmoid(gate(3)) * std::tanh(cell));
        }
        return result;
      },
      backwards);
}

Floats GRUByHand(const Loop& loop, bool reset_after) {
  return Outputs([&](int step, const Floats& h) {
    const auto x = [&](int column) { return loop.Of(step, column) + loop.Bias(column); };
    const auto inner = [&](int column) {
      return loop.Of(h, column) + (reset_after ? loop.Bias(3 * kUnits + column) : 0);
    };
    Floats reset, reset_h, result;
    for (int u = 0; u < kUnits; ++u) {
      reset.push_back(Sigmoid(x(kUnits + u) + inner(kUnits + u)));
      reset_h.push_back(reset.back() * h[static_cast<size_t>(u)]);
    }
    for (int u = 0; u < kUnits; ++u) {
      const int column = 2 * kUnits + u;
      const float update = Sigmoid(x(u) + inner(u));
      const float part = reset_after ? reset[static_cast<size_t>(u)] * inner(column) : loop.Of(reset_h, column);
      result.push_back(update * h[static_cast<size_t>(u)] + (1 - update) * std::tanh(x(column) + part));
    }
    return result;
  });
}

Floats Sequence(const LayerRef& layer, const Loop& loop) {
  return RunLayer(layer, loop.x, {loop.kernel, loop.recurrent, loop.bias}).ToVector<float>();
}
Floats Last(const Floats& sequence) { return {sequence.end() - kUnits, sequence.end()}; }

TEST(RecurrentLayersTest, LSTM) {
  const Loop loop = {.gates = 4, .bias = NoiseOf(Shape{8}, 3)};
  const Floats expected = LSTMByHand(loop);
  EXPECT_THAT(Sequence(LSTM(2, {.return_sequences = true}), loop), Pointwise(FloatNear(1e-5f), expected));
  EXPECT_THAT(Sequence(LSTM(2), loop), Pointwise(FloatNear(1e-5f), Last(expected)));
  const Floats backwards = LSTMByHand(loop, true);
  EXPECT_THAT(Sequence(LSTM(2, {.return_sequences = true, .go_backwards = true}), loop),
              Pointwise(FloatNear(1e-5f), backwards));
}

TEST(RecurrentLayersTest, GRU) {
  for (const bool after : {true, false}) {
    const Loop loop = {.gates = 3, .bias = NoiseOf(after ? Shape{2, 6} : Shape{6}, 3)};
    EXPECT_THAT(Sequence(GRU(2, {.return_sequences = true, .reset_after = after}), loop),
                Pointwise(FloatNear(1e-5f), GRUByHand(loop, after)));
  }
}

TEST(RecurrentLayersTest, SimpleRNN) {
  const Loop loop = {.gates = 1, .bias = NoiseOf(Shape{2}, 3)};
  const Floats expected = Outputs([&](int step, const Floats& h) {
    return Floats{std::tanh(loop.Of(step, 0) + loop.Of(h, 0) + loop.Bias(0)),
                  std::tanh(loop.Of(step, 1) + loop.Of(h, 1) + loop.Bias(1))};
  });
  EXPECT_THAT(Sequence(SimpleRNN(2, {.return_sequences = true}), loop), Pointwise(FloatNear(1e-5f), expected));
}

// A sequence in two halves, the second of which begins with the last states of the first, gives what it gives as one.
TEST(RecurrentLayersTest, StatesGoOn) {
  const auto check = [](const auto& make, size_t states) {
    const LayerRef layer = make();
    const LayerTensor whole = Input(Shape{4, 3}), first = Input(Shape{2, 3}), second = Input(Shape{2, 3});
    std::vector<LayerTensor> next = layer.Apply({first});
    ASSERT_EQ(next.size(), 1 + states);
    next[0] = second;
    Model model({whole, first, second}, {layer(whole), layer(next)}, {.seed = 5});
    const Tensor x = NoiseOf(Shape{2, 4, 3}, 1);
    Tensor parts[] = {Tensor(DType::kFloat32, Shape{2, 2, 3}), Tensor(DType::kFloat32, Shape{2, 2, 3})};
    for (int i = 0; i < 24; ++i) {
      parts[i / 6 % 2].data<float>()[i / 12 * 6 + i % 6] = x.data<float>()[i];
    }
    const std::vector<Tensor> y = model.PredictAll(ModelData({x, parts[0], parts[1]}, std::vector<Tensor>{}));
    EXPECT_THAT(y[1].ToVector<float>(), Pointwise(FloatNear(1e-5f), y[0].ToVector<float>())) << layer->class_name();
  };
  check([] { return LSTM(3, {.return_state = true}); }, 2);
  check([] { return GRU(3, {.return_state = true}); }, 1);
  check([] { return GRU(3, {.return_state = true, .reset_after = false}); }, 1);
  check([] { return SimpleRNN(3, {.return_state = true}); }, 1);
}

TEST(RecurrentLayersTest, WeightsBeginAsInKeras) {
  Sequential model({Input(Shape{2, 3}), LSTM(8, {.bias_initializer = initializers::Constant(2), .name = "memory"})},
                   {.seed = 3});
  EXPECT_THAT(model.WeightNames(),
              ElementsAre("memory/lstm_cell/kernel", "memory/lstm_cell/recurrent_kernel", "memory/lstm_cell/bias"));
  const std::vector<Tensor> weights = model.GetWeights();
  const Floats bias = weights[2].ToVector<float>();
  for (size_t i = 0; i < bias.size(); ++i) EXPECT_EQ(bias[i], i / 8 == 1 ? 1 : 2) << i;
  EXPECT_EQ(weights[1].shape(), (Shape{8, 32}));
  Sequential other({Input(Shape{2, 3}), LSTM(1, {.unit_forget_bias = false})});
  EXPECT_THAT(other.GetWeights()[2].ToVector<float>(), ElementsAre(0, 0, 0, 0));
}

// Returns the largest distance of m' m (or m m', if m is wide) from `gain`^2 times the identity.
float DistanceFromOrthogonal(const Tensor& m, float gain) {
  const int64_t rows = m.num_elements() / m.shape().dim(m.shape().rank() - 1), columns = m.num_elements() / rows;
  const bool wide = columns > rows;
  const int64_t size = wide ? rows : columns, other = wide ? columns : rows;
  float worst = 0;
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < other; ++k) {
        const auto at = [&](int64_t vector) {
          return m.data<float>()[wide ? vector * columns + k : k * columns + vector];
        };
        sum += double{at(i)} * double{at(j)};
      }
      worst = std::max(worst, std::abs(static_cast<float>(sum) - (i == j ? gain * gain : 0)));
    }
  }
  return worst;
}

TEST(RecurrentLayersTest, OrthogonalMatrices) {
  for (const auto& [in, units] : {std::pair<int64_t, int64_t>{1, 1}, {7, 7}, {64, 64}, {40, 96}, {96, 40}, {200, 3}}) {
    for (const int64_t seed : {1, 2, 3}) {
      Sequential model({Input(Shape{in}), Dense(units, {.kernel_initializer = "orthogonal"}),
                        Dense(4, {.kernel_initializer = initializers::Orthogonal(0.5, 2)})},
                       {.seed = seed});
      EXPECT_LT(DistanceFromOrthogonal(model.GetWeights()[0], 1), 1e-5) << in << " " << units << " " << seed;
      EXPECT_LT(DistanceFromOrthogonal(model.GetWeights()[2], 0.5), 1e-5) << in << " " << units << " " << seed;
    }
  }
  Sequential vector({Input(Shape{2}), Dense(3, {.bias_initializer = "orthogonal"})});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { vector.GetWeights(); }),
              HasSubstr("rank 2 or more for an orthogonal matrix; got [3]"));
}

// All steps of an example have the same zeros: if the second step is the first one with the other sign, their sum is 0.
TEST(RecurrentLayersTest, DropoutIsTheSameInAllSteps) {
  const SimpleRNNOptions options = {.activation = "linear",
                                    .use_bias = false,
                                    .kernel_initializer = "ones",
                                    .recurrent_initializer = "ones",
                                    .dropout = 0.5};
  Sequential model({Input(Shape{2, 8}), SimpleRNN(1, options)});
  model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
  Floats opposite, once;
  for (int i = 0; i < 16 * 16; ++i) {
    opposite.push_back(i / 8 % 2 == 0 ? 1.0f : -1.0f);
    once.push_back(i / 8 % 2 == 0 ? 1.0f : 0.0f);
  }
  const Shape shape{16, 2, 8};
  const Tensor zeros = Tensor::FromValues(Floats(16, 0), Shape{16, 1}),
               y = Tensor::FromValues(Floats(16, 8), Shape{16, 1});
  EXPECT_EQ(model.TrainOnBatch({Tensor::FromValues(opposite, shape), zeros})[0].second, 0);
  // A sum of eight elements, each of which is 0 or 2: examples and batches differ.
  const Tensor x = Tensor::FromValues(once, shape);
  EXPECT_THAT(model.Predict(x).ToVector<float>(), Pointwise(FloatNear(1e-6f), Floats(16, 8)));
  model.ResetMetrics();
  const double first = model.TrainOnBatch({x, y})[0].second;
  model.ResetMetrics();
  EXPECT_GT(first, 1);
  EXPECT_NE(model.TrainOnBatch({x, y})[0].second, first);
}

TEST(RecurrentLayersTest, DropoutOfInputsAndStatesTrains) {
  for (const LayerRef& layer :
       {LSTM(4, {.dropout = 0.2, .recurrent_dropout = 0.2}), GRU(4, {.dropout = 0.2, .recurrent_dropout = 0.2}),
        GRU(4, {.recurrent_dropout = 0.2, .reset_after = false}),
        SimpleRNN(4, {.dropout = 0.2, .recurrent_dropout = 0.2})}) {
    Sequential model({Input(Shape{3, 2}), layer, Dense(1)}, {.seed = 4});
    model.Compile({.optimizer = "adam", .loss = "mse"});
    const History history =
        model.Fit(NoiseOf(Shape{8, 3, 2}, 1), NoiseOf(Shape{8, 1}, 2), {.epochs = 60, .verbose = 0});
    EXPECT_LT(history["loss"].back(), 0.8 * history["loss"][0]) << layer->class_name();
  }
}

TEST(RecurrentLayersTest, Bidirectional) {
  const Loop there = {.gates = 4, .bias = NoiseOf(Shape{8}, 3)};
  Loop back = {.gates = 4, .bias = NoiseOf(Shape{8}, 7)};
  back.kernel = NoiseOf(Shape{2, 8}, 5);
  const std::vector<Tensor> weights = {there.kernel, there.recurrent, there.bias,
                                       back.kernel,  back.recurrent,  back.bias};
  const Floats forward = LSTMByHand(there);
  Floats backward = LSTMByHand(back, true);  // in the order of reading
  std::swap_ranges(backward.begin(), backward.begin() + 2, backward.end() - 2);
  const auto run = [&](const std::optional<std::string>& mode) {
    return RunLayer(Bidirectional(LSTM(2, {.return_sequences = true}), {.merge_mode = mode}), there.x, weights);
  };
  Floats concat, sum, mul, ave;
  for (size_t i = 0; i < 6; ++i) {
    sum.push_back(forward[i] + backward[i]);
    mul.push_back(forward[i] * backward[i]);
    ave.push_back((forward[i] + backward[i]) / 2);
    concat.push_back(forward[i]);
    if (i % 2 == 1) concat.insert(concat.end(), {backward[i - 1], backward[i]});
  }
  EXPECT_EQ(run("concat").shape(), (Shape{1, 3, 4}));
  EXPECT_THAT(run("concat").ToVector<float>(), Pointwise(FloatNear(1e-5f), concat));
  EXPECT_THAT(run("sum").ToVector<float>(), Pointwise(FloatNear(1e-5f), sum));
  EXPECT_THAT(run("mul").ToVector<float>(), Pointwise(FloatNear(1e-5f), mul));
  EXPECT_THAT(run("ave").ToVector<float>(), Pointwise(FloatNear(1e-5f), ave));
  EXPECT_THAT(run(std::nullopt).ToVector<float>(), Pointwise(FloatNear(1e-5f), forward));

  const auto results =
      Bidirectional(LSTM(2, {.return_state = true}), {.merge_mode = std::nullopt}).Apply({Input(Shape{3, 2})});
  EXPECT_EQ(results.size(), 6u);  // two outputs, then h and c of each direction
  Sequential named({Input(Shape{3, 2}), Bidirectional(GRU(2, {.use_bias = false, .name = "g"}))});
  EXPECT_THAT(
      named.WeightNames(),
      ElementsAre("bidirectional/forward_g/gru_cell/kernel", "bidirectional/forward_g/gru_cell/recurrent_kernel",
                  "bidirectional/backward_g/gru_cell/kernel", "bidirectional/backward_g/gru_cell/recurrent_kernel"));
}

TEST(RecurrentLayersTest, TimeDistributed) {
  const Tensor x = NoiseOf(Shape{2, 3, 4}, 1), kernel = NoiseOf(Shape{4, 2}, 2), bias = NoiseOf(Shape{2}, 3);
  const Tensor y = RunLayer(TimeDistributed(Dense(2, {.activation = "tanh"})), x, {kernel, bias});
  EXPECT_EQ(y.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(y.ToVector<float>(), RunLayer(Dense(2, {.activation = "tanh"}), x, {kernel, bias}).ToVector<float>());
  EXPECT_EQ(ShapeAfter(TimeDistributed(Flatten()), Shape{3, 4, 5}), (Shape{-1, 3, 20}));
  EXPECT_EQ(ShapeAfter(TimeDistributed(TimeDistributed(Dense(7))), Shape{3, 4, 5}), (Shape{-1, 3, 4, 7}));
}

// A model in it keeps its weights, also inside of two of them.
TEST(RecurrentLayersTest, TimeDistributedModelsKeepTheirWeights) {
  const Sequential inner({Input(Shape{4}), Dense(2, {.name = "d"})}, {.name = "inner", .seed = 6});
  Sequential once({Input(Shape{3, 4}), TimeDistributed(inner.AsLayer(), {.name = "t"})});
  EXPECT_THAT(once.WeightNames(), ElementsAre("t/inner/d/kernel", "t/inner/d/bias"));
  EXPECT_EQ(once.GetWeights()[0].ToVector<float>(), inner.GetWeights()[0].ToVector<float>());
  Sequential twice({Input(Shape{2, 3, 4}), TimeDistributed(TimeDistributed(inner.AsLayer()))});
  EXPECT_EQ(twice.GetWeights()[0].ToVector<float>(), inner.GetWeights()[0].ToVector<float>());
}

TEST(RecurrentLayersTest, FrozenWithAllParts) {
  const LayerRef both = Bidirectional(LSTM(2));
  const LayerRef step = TimeDistributed(Dense(2), {.trainable = false});
  Sequential model({Input(Shape{3, 4}), step, both, Dense(1)});
  EXPECT_EQ(model.TrainableWeightNames().size(), 8u);
  both.SetTrainable(false);
  model.Compile({.loss = "mse"});
  EXPECT_THAT(model.TrainableWeightNames(), ElementsAre("dense/kernel", "dense/bias"));
}

// The nodes of all steps are made once for each replica.
TEST(RecurrentReplicas, UpdateAsOneDevice) {
  std::vector<std::vector<Floats>> weights;
  for (const auto& strategy : {distribute::Default(), distribute::MirroredOnCpus(2)}) {
    const LayerTensor x = Input(Shape{3, 4});
    const LayerTensor sequence = Bidirectional(LSTM(3, {.return_sequences = true}))(x);
    const LayerTensor attended = MultiHeadAttention(2, 3)({sequence, sequence});
    Model model({x}, {GRU(2)(TimeDistributed(Dense(3))(attended))}, {.seed = 5, .strategy = strategy});
    model.Compile({.optimizer = SGD({.learning_rate = 0.1, .momentum = 0.9}), .loss = "mse"});
    model.Fit(NoiseOf(Shape{9, 3, 4}, 1), NoiseOf(Shape{9, 2}, 2), {.batch_size = 4, .epochs = 5, .verbose = 0});
    weights.emplace_back();
    for (const Tensor& weight : model.GetWeights()) weights.back().push_back(weight.ToVector<float>());
  }
  ASSERT_EQ(weights[0].size(), weights[1].size());
  for (size_t i = 0; i < weights[0].size(); ++i) {
    EXPECT_THAT(weights[1][i], Pointwise(FloatNear(1e-5f), weights[0][i]));
  }
}

std::string ErrorOfLayer(const std::function<void()>& make) { return MessageOf<InvalidArgumentError>(make); }

TEST(RecurrentLayersTest, WhatTheyRefuse) {
  EXPECT_THAT(ErrorOfLayer([] { LSTM(0); }), HasSubstr("expected units > 0; got 0"));
  EXPECT_THAT(ErrorOfLayer([] { GRU(1, {.dropout = 1}); }), HasSubstr("expected a rate in [0, 1); got 1"));
  EXPECT_THAT(ErrorOfLayer([] { SimpleRNN(1)(Input(Shape{3})); }), HasSubstr("[batch, steps, features]"));
  EXPECT_THAT(ErrorOfLayer([] { LSTM(1)(Input(Shape{-1, 3})); }), HasSubstr("dimension 1 is known"));
  EXPECT_THAT(ErrorOfLayer([] { LSTM(1)(Input(Shape{100'000, 3})); }), HasSubstr("1 to 16384 steps"));
  const LayerTensor x = Input(Shape{3, 2}), h = Input(Shape{4}), wrong = Input(Shape{5});
  EXPECT_THAT(ErrorOfLayer([&] { LSTM(4)({x, h}); }), HasSubstr("a sequence and 2 initial states; got 2 inputs"));
  EXPECT_THAT(ErrorOfLayer([&] { GRU(4)({x, wrong}); }), HasSubstr("an initial state [batch, 4]; got shape [?,5]"));
  EXPECT_THAT(ErrorOfLayer([&] { Bidirectional(GRU(4))({x, h}); }), HasSubstr("a sequence and 2 initial states"));
  EXPECT_THAT(ErrorOfLayer([] { Bidirectional(Dense(2)); }), HasSubstr("an LSTM, a GRU or a SimpleRNN; got a Dense"));
  EXPECT_THAT(ErrorOfLayer([] { Bidirectional(GRU(2), {.merge_mode = "max"}); }), HasSubstr("got 'max'"));
  EXPECT_THAT(ErrorOfLayer([] { Bidirectional(GRU(2, {.go_backwards = true})); }), HasSubstr("opposite directions"));
  EXPECT_THAT(ErrorOfLayer([] {
                Bidirectional(GRU(2), {.backward_layer = GRU(2, {.return_sequences = true, .go_backwards = true})});
              }),
              HasSubstr("same return_sequences"));
  EXPECT_THAT(ErrorOfLayer([] { TimeDistributed(Dense(2, {.input_shape = Shape{4}})); }),
              HasSubstr("among the options of TimeDistributed; got [4] for the Dense"));
  EXPECT_EQ(Bidirectional(GRU(2, {.input_shape = Shape{3, 4}})).input_shape(), (Shape{3, 4}));
  EXPECT_THAT(ErrorOfLayer([] { TimeDistributed(Dense(2))(Input(Shape{3})); }), HasSubstr("of rank 3 or more"));
}

}  // namespace
}  // namespace cohort::keras
