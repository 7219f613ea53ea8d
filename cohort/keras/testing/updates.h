// For tests: runs small trainings, so that their updates can be compared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cohort/core/testing/seeded_noise.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/model.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {

// One small training: its data, model and optimizer.
struct TrainingCase {
  OptimizerPtr optimizer;
  int64_t examples = 22;
  int64_t batch_size = 8;  // of all replicas together
  int epochs = 2;
  bool regularized = false;
  bool weighted = false;   // examples have weights, some of them 0; class 1 has the weight 1.5
  bool by_weight = false;  // the loss is divided by the sum of the weights
  bool normalized = false;
  int64_t seed = 1;
  std::string dtype_policy = "float32";
};

// The weights before and after a training, and its results. `evaluated` is the loss that Evaluate returns.
struct Trained {
  std::vector<Tensor> before, after;
  double loss = 0, metric = 0, evaluated = 0;
};

inline ModelData DataOf(const TrainingCase& c) {
  const Tensor x = SeededNoise(Shape{c.examples, 5}, c.seed);
  Tensor y(DType::kInt64, Shape{c.examples});
  Tensor weight(DType::kFloat32, Shape{c.examples});
  for (int64_t i = 0; i < c.examples; ++i) {
    const float* row = x.data<float>() + i * 5;
    y.data<int64_t>()[i] = row[0] > 0.3f ? 2 : row[1] + row[2] > 0 ? 1 : 0;
    weight.data<float>()[i] = i % 7 == 3 ? 0.0f : 0.5f + static_cast<float>(i % 3);
  }
  return c.weighted ? ModelData(x, y, weight) : ModelData(x, y);
}

inline std::unique_ptr<Sequential> ModelOf(const TrainingCase& c, const distribute::StrategyPtr& strategy) {
  const Regularizer penalty = c.regularized ? regularizers::L2(0.02) : Regularizer();
  std::vector<SequentialItem> layers = {Dense(7, {.activation = "tanh", .kernel_regularizer = penalty})};
  if (c.normalized) layers.emplace_back(BatchNormalization({.momentum = 0.6, .synchronized = true}));
  layers.emplace_back(Dense(6, {.activation = "tanh"}));
  layers.emplace_back(Dense(3, {.activation = "softmax", .bias_regularizer = penalty}));
  auto model = std::make_unique<Sequential>(layers, ModelOptions{.dtype_policy = c.dtype_policy,
                                                                 .seed = c.seed,
                                                                 .session = {.intra_op_parallelism_threads = 1},
                                                                 .strategy = strategy});
  const Reduction reduction = c.by_weight ? Reduction::kMeanWithSampleWeight : Reduction::kSumOverBatchSize;
  model->Compile({.optimizer = c.optimizer,
                  .loss = SparseCategoricalCrossentropy({.reduction = reduction}),
                  .metrics = {"accuracy"}});
  return model;
}

inline Trained Train(const TrainingCase& c, const distribute::StrategyPtr& strategy) {
  const auto model = ModelOf(c, strategy);
  const ModelData data = DataOf(c);
  model->Build(Shape{-1, 5});
  Trained trained;
  trained.before = model->GetWeights();
  FitOptions fit = {.batch_size = c.batch_size, .epochs = c.epochs, .verbose = 0};
  if (c.weighted) fit.class_weight = {{1, 1.5}};
  const History history = model->Fit(data, fit);
  trained.after = model->GetWeights();
  trained.loss = history["loss"].back();
  trained.metric = history["accuracy"].back();
  trained.evaluated = FindLog(model->Evaluate(data, {.batch_size = 7, .verbose = 0}), "loss").value();
  return trained;
}

// For each weight: d = || (b's change) - (a's change) || / || a's change ||. Returns the largest d. If a's change is 0,
// d is the squared numerator.
inline double DistanceOfUpdates(const Trained& a, const Trained& b) {
  double largest = 0;
  for (size_t w = 0; w < a.before.size(); ++w) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < a.before[w].num_elements(); ++i) {
      const double of_a = a.after[w].data<float>()[i] - a.before[w].data<float>()[i];
      const double of_b = b.after[w].data<float>()[i] - b.before[w].data<float>()[i];
      difference += (of_a - of_b) * (of_a - of_b);
      norm += of_a * of_a;
    }
    largest = std::max(largest, norm > 0 ? std::sqrt(difference / norm) : difference);
  }
  return largest;
}

}  // namespace cohort::keras
