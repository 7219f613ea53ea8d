// Layers that compute on values of any shape: Dense, Activation, Dropout, Embedding, and where data enters a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/keras/layers/activations.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

struct InputOptions {
  DType dtype = DType::kFloat32;  // data of another dtype is converted to it
  std::string name;
};
// Where data enters a model; `shape` is that of one example. The first item of a Sequential, or the beginning of a
// functional model.
LayerTensor Input(const Shape& shape, const InputOptions& options = {});

struct DenseOptions {
  ActivationFunction activation;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer;
  Regularizer bias_regularizer;
  std::string name;
  bool trainable = true;
};
// activation(x kernel + bias): [batch, ..., in] -> [batch, ..., units]. Weights: kernel [in, units], bias [units].
LayerRef Dense(int64_t units, const DenseOptions& options = {});

struct LayerOptions {
  std::string name;
};
LayerRef Activation(const ActivationFunction& activation, const LayerOptions& options = {});

struct DropoutOptions {
  int64_t seed = 0;  // two layers have other numbers in any case, as have two steps; see CallContext::StepSeed
  std::string name;
};
// In training each element is zero with probability `rate`, the others are divided by 1 - rate; otherwise x itself.
// Throws InvalidArgumentError for a rate outside [0, 1).
LayerRef Dropout(double rate, const DropoutOptions& options = {});

struct EmbeddingOptions {
  Initializer embeddings_initializer = "random_uniform";
  Regularizer embeddings_regularizer;
  std::string name;
  bool trainable = true;
};
// Row x[...] of the weight embeddings [input_dim, output_dim]: integers [batch, ...] -> [batch, ..., output_dim]. A
// number outside [0, input_dim) fails the step with InvalidArgumentError. Its gradient is sparse: only the rows that
// occur are touched.
LayerRef Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options = {});

// [batch, ...] -> [batch, product of the others].
LayerRef Flatten(const LayerOptions& options = {});
// The elements of each example in another shape; one dimension of `target` may be -1.
LayerRef Reshape(const std::vector<int64_t>& target, const LayerOptions& options = {});

// The sum of two or more inputs, which broadcast against each other.
LayerRef Add(const LayerOptions& options = {});
struct ConcatenateOptions {
  int axis = -1;
  std::string name;
};
LayerRef Concatenate(const ConcatenateOptions& options = {});

}  // namespace cohort::keras
