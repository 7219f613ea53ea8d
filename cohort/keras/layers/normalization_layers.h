// Layers that normalize values to mean 0 and variance 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

struct COHORT_EXPORT BatchNormalizationOptions {
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;  // true: there is a weight beta
  bool scale = true;   // true: there is a weight gamma
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer;
  Regularizer gamma_regularizer;
  bool synchronized = false;  // true: mean and variance are taken over the batches of all replicas
  std::string name;
  bool trainable = true;
};
// Computes gamma (x - mean) / sqrt(variance + epsilon) + beta for each channel (index of the last axis). In training,
// mean and variance are those of the batch; the variance is the mean of the squared differences from the mean, and
// steps whose mask is false do not count in them. The batch's mean and variance also update the moving averages: moving
// = moving * momentum + batch * (1 - momentum). If this is not a training step, or if the layer is not trainable, mean
// and variance are the moving averages. Weights, [channels] in float32: gamma (if scale), beta (if center),
// moving_mean, moving_variance.
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
// Computes the formula of BatchNormalization, but mean and variance are those of one vector along the last axis. It has
// no moving averages, and computes the same in training and in inference. Weights, [channels]: gamma (if scale), beta
// (if center).
COHORT_EXPORT LayerRef LayerNormalization(const LayerNormalizationOptions& options = {});

struct COHORT_EXPORT GroupNormalizationOptions {
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
// Computes the formula of BatchNormalization for [batch, ..., channels], but mean and variance are those of one example
// and of one group of channels, over all axes between the batch and the channels. Each of the `groups` groups has
// channels / groups channels that follow each other. -1 stands for as many groups as channels. It has no moving
// averages, and computes the same in training and in inference. All dimensions but the batch must be known. Weights,
// [channels]: gamma (if scale), beta (if center). Throws InvalidArgumentError if the groups do not divide the channels.
COHORT_EXPORT LayerRef GroupNormalization(int64_t groups = 32, const GroupNormalizationOptions& options = {});

struct COHORT_EXPORT UnitNormalizationOptions {
  std::vector<int64_t> axis = {-1};  // axis 0 is the batch; a negative axis counts from the end
  std::string name;
};
// Divides each vector along the axes by its length, the root of the sum of its squares. The factor is 1e12 at most.
// Throws InvalidArgumentError for an axis that the input does not have.
COHORT_EXPORT LayerRef UnitNormalization(const UnitNormalizationOptions& options = {});

}  // namespace cohort::keras
