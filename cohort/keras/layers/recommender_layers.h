// Layers of models that recommend, with the names and arguments of Keras Recommenders (keras_rs): EmbedReduce,
// DotInteraction and FeatureCross. Python opens files with these layers if it imports keras_rs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/activations.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

struct COHORT_EXPORT EmbedReduceOptions {
  std::string combiner = "mean";  // "sum", "mean" or "sqrtn"
  // Positions with this id count for nothing, as in PyTorch's EmbeddingBag: set it to the number that pads lists of
  // different lengths. keras_rs has no such option, so Python cannot open a file that has it.
  std::optional<int64_t> padding_idx;
  Initializer embeddings_initializer = "random_uniform";
  Regularizer embeddings_regularizer;
  std::string name;
  bool trainable = true;
};
// Makes one vector of a list of ids: looks up the rows r_j of the weight `embeddings` [input_dim, output_dim] and
// computes, over the last axis of the ids, with weights w_j:
// - "sum": sum_j w_j r_j;
// - "mean": sum_j w_j r_j / sum_j w_j;
// - "sqrtn": sum_j w_j r_j / sqrt(sum_j w_j^2); a divisor of 0 gives 0.
// The inputs are ids [batch, n], and if there is a second one, their weights [batch, n]; without it all are 1. The
// result is [batch, output_dim]. Ids [batch] are looked up and multiplied by their weights if the combiner is "sum".
// An id outside of [0, input_dim) fails the step with InvalidArgumentError, also where its weight is 0. The gradient is
// sparse. Throws InvalidArgumentError for other shapes and an unknown combiner.
COHORT_EXPORT LayerRef EmbedReduce(int64_t input_dim, int64_t output_dim, const EmbedReduceOptions& options = {});

struct COHORT_EXPORT DotInteractionOptions {
  bool self_interaction = false;  // true: also the product of each input with itself
  bool skip_gather = false;       // true: all places of the matrix stay; those above the diagonal are 0
  std::string name;
};
// Computes the products x_i . x_j of two or more inputs [batch, features] of one shape, for j < i, as DLRM does. The
// result is [batch, k (k - 1) / 2] for k inputs, [batch, k (k + 1) / 2] with self_interaction, or [batch, k * k] with
// skip_gather.
COHORT_EXPORT LayerRef DotInteraction(const DotInteractionOptions& options = {});

struct COHORT_EXPORT FeatureCrossOptions {
  std::optional<int64_t> projection_dim;  // if it is given, the kernel is a product of two matrices of this rank
  double diag_scale = 0.0;                // added to the kernel's diagonal; not negative
  bool use_bias = true;
  ActivationFunction pre_activation;  // applied to kernel * x + bias
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer;
  Regularizer bias_regularizer;
  std::string name;
  bool trainable = true;
};
// Computes x0 * (kernel x + bias + diag_scale x) + x, a layer of a deep and cross network (DCN v2). The inputs are x0
// and x [batch, ..., features] of one shape, or x0 alone, which is x then, too.
COHORT_EXPORT LayerRef FeatureCross(const FeatureCrossOptions& options = {});

}  // namespace cohort::keras
