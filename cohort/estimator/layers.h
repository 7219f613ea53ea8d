// Layers as functions of a graph, with the names, the defaults and the variables of tf.compat.v1.layers: Dense, Conv2D,
// MaxPooling2D, AveragePooling2D, Flatten, Dropout, BatchNormalization. So TensorFlow 1's checkpoints fit. Each call
// makes new variables, called after the layer: "conv2d/kernel", "conv2d_1/kernel", ...
//
// Batch normalization in training changes its moving averages only if its updates run (UpdateOps):
//
//   const ControlDependencies after(graph, layers::UpdateOps(graph));
//   Node* train_op = optimizer.Minimize(loss, step);
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/layers/activations.h"
#include "cohort/ops/initializers.h"

namespace cohort::layers {

// Returns the loss (a scalar) that a weight adds to the training. Functions that make layers call it once, and add the
// result to the collection of losses::GetRegularizationLosses.
using Regularizer = std::function<Output(Output weight)>;

struct COHORT_EXPORT DenseOptions {
  keras::ActivationFunction activation;  // a name or a function, such as ops::Relu; none by default
  bool use_bias = true;
  ops::Initializer kernel_initializer;  // null: glorot_uniform
  ops::Initializer bias_initializer;    // null: zeros
  Regularizer kernel_regularizer;       // null: none
  bool trainable = true;
  std::string name = "dense";  // made unique in the graph
};
// Returns activation(inputs * kernel + bias): [..., units] for `inputs` of [..., n]. Adds the variables "<name>/kernel"
// [n, units] and "<name>/bias" [units]. Throws InvalidArgumentError if `units` is less than 1, if `inputs` have fewer
// than two dimensions, or if n is not known.
COHORT_EXPORT Output Dense(Output inputs, int64_t units, const DenseOptions& options = {});

// Two numbers, for rows and for columns: 3 (for both), or {3, 5}.
struct COHORT_EXPORT Pair {
  int64_t rows;
  int64_t columns;
  Pair(int64_t both) : rows(both), columns(both) {}  // NOLINT(google-explicit-constructor)
  Pair(int64_t rows, int64_t columns) : rows(rows), columns(columns) {}
};

struct COHORT_EXPORT Conv2DOptions {
  Pair strides = 1;
  std::string padding = "valid";  // or "same": the result has ceil(size / stride) rows and columns
  Pair dilation_rate = 1;
  keras::ActivationFunction activation;
  bool use_bias = true;
  ops::Initializer kernel_initializer;  // null: glorot_uniform
  ops::Initializer bias_initializer;    // null: zeros
  Regularizer kernel_regularizer;       // null: none
  bool trainable = true;
  std::string name = "conv2d";
};
// Returns activation(convolution of inputs and kernel + bias): [batch, rows, columns, filters] for `inputs` of [batch,
// rows, columns, channels], float32 or bfloat16. Adds the variables "<name>/kernel" [kernel rows, kernel columns,
// channels, filters] and "<name>/bias" [filters]. Throws InvalidArgumentError if a size is less than 1, for a
// padding of another name, for inputs of another rank, and if the channels are not known.
COHORT_EXPORT Output Conv2D(Output inputs, int64_t filters, Pair kernel_size, const Conv2DOptions& options = {});

struct COHORT_EXPORT Pooling2DOptions {
  std::string padding = "valid";  // or "same"; elements of the padding do not count
  std::string name;               // "": the name of the function in TensorFlow
};
// Return the largest element, or the mean, of each window of `pool_size` in each channel; the windows are `strides`
// apart. `inputs` are as for Conv2D. They throw InvalidArgumentError for sizes below 1 and for a padding of another
// name.
COHORT_EXPORT Output MaxPooling2D(Output inputs, Pair pool_size, Pair strides, const Pooling2DOptions& options = {});
COHORT_EXPORT Output AveragePooling2D(Output inputs, Pair pool_size, Pair strides,
                                      const Pooling2DOptions& options = {});

// Returns [batch, product of the other dimensions]. Throws InvalidArgumentError if a dimension other than the first one
// is not known.
COHORT_EXPORT Output Flatten(Output inputs, const std::string& name = "flatten");

// Whether a layer works as in training: a truth value of the program, or one of the graph (bool []), such as a
// placeholder. With one of the graph, the nodes of both cases run, and the result is chosen from them.
class COHORT_EXPORT Training {
 public:
  Training(bool training) : constant_(training) {}  // NOLINT(google-explicit-constructor)
  Training(Output training) : fed_(training) {}     // NOLINT(google-explicit-constructor)
  bool is_constant() const { return !fed_.valid(); }
  bool constant() const { return constant_; }  // requires: is_constant()
  Output output() const { return fed_; }       // requires: !is_constant()

 private:
  bool constant_ = false;
  Output fed_;
};

struct COHORT_EXPORT DropoutOptions {
  double rate = 0.5;          // the part of the elements that becomes zero
  int64_t seed = 0;           // see ops/random.h
  Training training = false;  // false: returns the inputs
  std::string name = "dropout";
};
// Returns the inputs with some elements set to zero at random; the others are divided by 1 - rate.
COHORT_EXPORT Output Dropout(Output inputs, const DropoutOptions& options = {});

struct COHORT_EXPORT BatchNormalizationOptions {
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;                            // adds beta
  bool scale = true;                             // multiplies by gamma
  ops::Initializer beta_initializer;             // null: zeros
  ops::Initializer gamma_initializer;            // null: ones
  ops::Initializer moving_mean_initializer;      // null: zeros
  ops::Initializer moving_variance_initializer;  // null: ones
  // True: normalizes by the batch, and adds the updates of the moving averages to UpdateOps. With a value of the graph
  // that is false, the updates change nothing.
  Training training = false;
  bool trainable = true;
  std::string name = "batch_normalization";
};
// Returns gamma * (inputs - mean) / sqrt(variance + epsilon) + beta, for each channel of the last axis. In training,
// mean and variance are those of the batch, and each moving average becomes momentum * itself + (1 - momentum) * the
// batch's when its update runs. Otherwise they are the moving averages. `inputs` are float32, or bfloat16 if they have
// rank 4. Adds the variables "<name>/gamma", "<name>/beta", "<name>/moving_mean" and "<name>/moving_variance", float32
// [channels]. As in TensorFlow, the variance that goes into the moving average of inputs of rank 4 is divided by the
// count - 1. Throws InvalidArgumentError if the channels are not known.
COHORT_EXPORT Output BatchNormalization(Output inputs, const BatchNormalizationOptions& options = {});

// The collection of updates that a training step has to run: tf.GraphKeys.UPDATE_OPS. AddUpdateOp adds one, which must
// have an output; UpdateOps returns them all.
inline constexpr const char* kUpdateOps = "update_ops";
COHORT_EXPORT void AddUpdateOp(Output done);
COHORT_EXPORT std::vector<Node*> UpdateOps(Graph& graph);

}  // namespace cohort::layers
