// The model and the data of guide 002, for the tests of estimators.
#pragma once

#include <memory>
#include <vector>

#include "cohort/estimator/estimator.h"
#include "cohort/ops/array.h"
#include "cohort/train/optimizer.h"

namespace cohort::estimator::testing {

inline data::Dataset TrainingData() {
  return data::Dataset::FromTensorSlices({Tensor::FromValues<float>({1, 1.5f, 2, 2.5f, 3, 3.5f}, Shape{3, 2}),
                                          Tensor::FromValues<float>({0.3f, 0.5f, 0.7f}, Shape{3, 1})})
      .Batch(1);
}

inline data::Dataset EvaluationData() {
  return data::Dataset::FromTensorSlices({Tensor::FromValues<float>({4, 4.5f, 5, 5.5f, 6, 6.5f}, Shape{3, 2}),
                                          Tensor::FromValues<float>({0.8f, 0.9f, 1}, Shape{3, 1})})
      .Batch(1);
}

// One dense layer, which begins with the guide's kernel, and Adagrad.
inline EstimatorSpec LinearModel(const ModelFnArgs& args) {
  const Tensor kernel = Tensor::FromValues<float>({-1.0831399f, 1.0521792f}, Shape{2, 1});
  const Output logits = layers::Dense(args.features.front(), 1, {.kernel_initializer = initializers::Constant(kernel)});
  EstimatorSpec spec{.mode = args.mode, .predictions = {{"logits", logits}}};
  if (args.mode == ModeKeys::kPredict) return spec;
  spec.loss = losses::MeanSquaredError(args.labels.front(), logits);
  if (args.mode == ModeKeys::kEval) {
    spec.eval_metric_ops["mse"] = metrics::MeanSquaredError(args.labels.front(), logits);
    return spec;
  }
  train::AdagradOptimizer optimizer(0.05);
  spec.train_op = optimizer.Minimize(spec.loss, *ops::GetGlobalStep(args.graph));
  return spec;
}

}  // namespace cohort::estimator::testing
