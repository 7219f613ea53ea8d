// Layers, losses and metrics as functions of a graph, for model functions of an Estimator. They have the names and the
// defaults of tf.compat.v1.layers, tf.compat.v1.losses and tf.compat.v1.metrics.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/layers/activations.h"
#include "cohort/ops/initializers.h"
#include "cohort/ops/variables.h"

namespace cohort::layers {

struct COHORT_EXPORT DenseOptions {
  keras::ActivationFunction activation;  // none by default
  bool use_bias = true;
  ops::Initializer kernel_initializer;  // null: glorot_uniform
  ops::Initializer bias_initializer;    // null: zeros
  std::string name = "dense";           // made unique in the graph
};
// Returns activation(inputs * kernel + bias): [batch, units] for `inputs` of [batch, n]. Adds the variables
// "<name>/kernel" [n, units] and "<name>/bias" [units]. Throws InvalidArgumentError if `units` is less than 1, if the
// rank of `inputs` is not 2, or if n is not known.
COHORT_EXPORT Output Dense(Output inputs, int64_t units, const DenseOptions& options = {});

}  // namespace cohort::layers

namespace cohort::losses {

// Returns the mean of (labels - predictions)^2 over all elements: a scalar. Throws InvalidArgumentError if the shapes
// are not equal, as far as they are known.
COHORT_EXPORT Output MeanSquaredError(Output labels, Output predictions, const NodeName& name = "mean_squared_error");

}  // namespace cohort::losses

namespace cohort::metrics {

// A metric of an evaluation. Its variables are local, so each evaluation begins anew.
struct COHORT_EXPORT Metric {
  Output value;            // the result so far
  Node* update = nullptr;  // takes in the current batch
};
// The mean of all values of all batches: float32 [].
COHORT_EXPORT Metric Mean(Output values, const std::string& name = "mean");
// The part of examples whose prediction is equal to the label: float32 []. Both have the same shape and dtype.
COHORT_EXPORT Metric Accuracy(Output labels, Output predictions, const std::string& name = "accuracy");
// The mean of (labels - predictions)^2 over all batches: float32 [].
COHORT_EXPORT Metric MeanSquaredError(Output labels, Output predictions,
                                      const std::string& name = "mean_squared_error");

}  // namespace cohort::metrics
