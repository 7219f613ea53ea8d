// Layers that bring values to mean 0 and variance 1.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

struct COHORT_EXPORT BatchNormalizationOptions {
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;  // a beta
  bool scale = true;   // a gamma
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer;
  Regularizer gamma_regularizer;
  bool synchronized = false;  // statistics over the batches of all replicas
  std::string name;
  bool trainable = true;
};
// gamma (x - mean) / sqrt(variance + epsilon) + beta for each element of the last axis. In training with the mean and
// variance (divided by the count) of the batch, which also move the averages: moving momentum + batch (1 - momentum);
// otherwise, and where it is not trainable, with the moving ones. Weights [channels] float32: gamma, beta, moving_mean,
// moving_variance.
COHORT_EXPORT LayerRef BatchNormalization(const BatchNormalizationOptions& options = {});

struct COHORT_EXPORT LayerNormalizationOptions {
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer;
  Regularizer gamma_regularizer;
  std::string name;
  bool trainable = true;
};
// The same over the last axis of each example. Weights [channels]: gamma, beta.
COHORT_EXPORT LayerRef LayerNormalization(const LayerNormalizationOptions& options = {});

}  // namespace cohort::keras
