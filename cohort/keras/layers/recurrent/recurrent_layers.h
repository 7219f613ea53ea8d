// Layers for sequences [batch, steps, features]:
// - LSTM, GRU, SimpleRNN, which read the steps one after the other;
// - Bidirectional, which reads them in both directions;
// - TimeDistributed, which applies a layer to each step.
//
// The number of steps has to be known when a model is built; only the batch size may be unknown. The three recurrent
// layers are unrolled: each step becomes nodes of the graph. The product of the inputs with the kernel is made for all
// steps at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/activations.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// What the options of the three recurrent layers have in common:
// - The layer takes x [batch, steps, in], and returns the output h of the last step, [batch, units]. With
//   return_sequences it returns those of all steps, [batch, steps, units]. With return_state the last states follow, as
//   further results [batch, units] (LayerRef::Apply returns all results).
// - Further inputs [batch, units] are the initial states, which are zeros otherwise: layer({x, h, c}) for an LSTM,
//   layer({x, h}) for the others.
// - go_backwards begins with the last step. The sequence that is returned has the order in which the steps were read.
// - If x carries a mask [batch, steps], a masked step leaves the states as they are, and its output is that of the step
//   that was read before, or zeros if there was none. With zero_output_for_mask it is zeros. The sequence that is
//   returned carries the mask of x. As in Keras, a layer that gets initial states does not use the mask.
// - In training, `dropout` is the probability with which a feature of the input is set to zero, and recurrent_dropout
//   the same for a unit of h. An example has the same zeros in all its steps. The values that stay are divided by
//   1 - rate.
// - The functions throw InvalidArgumentError for units below 1 and for a rate outside of [0, 1). Models throw it for
//   inputs of another shape, and for more than 16384 steps.

struct COHORT_EXPORT LSTMOptions {
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;  // the bias of the forget gate begins with ones
  Regularizer kernel_regularizer;
  Regularizer recurrent_regularizer;
  Regularizer bias_regularizer;
  double dropout = 0.0;
  double recurrent_dropout = 0.0;
  int64_t seed = 0;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool zero_output_for_mask = false;
  std::string name;
  bool trainable = true;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Long short-term memory, with the states h and c. a is `activation`, s is recurrent_activation, * multiplies element
// by element, and [i, f, g, o] are the four parts of x kernel + h recurrent_kernel + bias. In each step
//   c = s(f) * c + s(i) * a(g),  h = s(o) * a(c).
// Weights, in lstm_cell: kernel [in, 4 units], recurrent_kernel [units, 4 units], bias [4 units].
COHORT_EXPORT LayerRef LSTM(int64_t units, const LSTMOptions& options = {});

struct COHORT_EXPORT GRUOptions {
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer;
  Regularizer recurrent_regularizer;
  Regularizer bias_regularizer;
  double dropout = 0.0;
  double recurrent_dropout = 0.0;
  int64_t seed = 0;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool zero_output_for_mask = false;
  bool reset_after = true;
  std::string name;
  bool trainable = true;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Gated recurrent unit, with the state h. [z, r, g] are the three parts of x kernel + bias, [zh, rh, gh] those of
// h recurrent_kernel, to which reset_after adds a bias of its own. In each step
//   u = s(z + zh),  q = s(r + rh),  n = a(g + q * gh),  h = u * h + (1 - u) * n.
// If reset_after is false, gh is instead (q * h) times its part of recurrent_kernel, and q * gh is gh.
// Weights, in gru_cell: kernel [in, 3 units], recurrent_kernel [units, 3 units], bias [2, 3 units] with reset_after,
// else [3 units].
COHORT_EXPORT LayerRef GRU(int64_t units, const GRUOptions& options = {});

struct COHORT_EXPORT SimpleRNNOptions {
  ActivationFunction activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer;
  Regularizer recurrent_regularizer;
  Regularizer bias_regularizer;
  double dropout = 0.0;
  double recurrent_dropout = 0.0;
  int64_t seed = 0;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool zero_output_for_mask = false;
  std::string name;
  bool trainable = true;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Computes h = a(x kernel + h recurrent_kernel + bias) in each step. Weights, in simple_rnn_cell: kernel [in, units],
// recurrent_kernel [units, units], bias [units].
COHORT_EXPORT LayerRef SimpleRNN(int64_t units, const SimpleRNNOptions& options = {});

struct COHORT_EXPORT BidirectionalOptions {
  std::optional<std::string> merge_mode = "concat";  // or "sum", "mul", "ave"; nullopt: two results (Keras's None)
  std::optional<LayerRef> backward_layer;            // nullopt: `layer` with go_backwards
  std::string name;
  bool trainable = true;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Reads a sequence by a recurrent layer forwards and by another one backwards, and merges their results. If they are
// sequences, that of the backward layer is turned around first, so that the steps fit, and both layers have
// zero_output_for_mask. With return_state the states of
// the forward layer follow as further results, then those of the backward layer. Initial states have the same order.
// The new layer has weights of its own: `layer` and backward_layer only say of which kind its two parts are. These are
// called "forward_<name of layer>" and "backward_<name of layer>", or as backward_layer is called. If the options have
// no input_shape, that of `layer` counts. Throws InvalidArgumentError for a layer that is not one of the three above,
// for another merge_mode, and for layers that differ in return_sequences or return_state or read in the same direction.
COHORT_EXPORT LayerRef Bidirectional(const LayerRef& layer, const BidirectionalOptions& options = {});

struct COHORT_EXPORT TimeDistributedOptions {
  std::string name;
  bool trainable = true;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Applies `layer` to each step of x [batch, steps, ...], with the same weights. The layer gets the steps of all
// examples as one batch [batch * steps, ...]. So a BatchNormalization in it normalizes over all steps, and moves its
// statistics once, while Keras calls it for one step after the other. A mask [batch, steps, ...] of x becomes a mask
// [batch * steps, ...] of its input, and the result carries the mask of x. If `layer` makes one value of a step whose
// parts have a mask, the result carries a mask [batch, steps], which is true if one part counts. If `layer` is a
// model, or was looked up in one, a new model begins with copies of its weights. Throws InvalidArgumentError if `layer`
// has an input_shape, because that of this layer has the steps, too.
COHORT_EXPORT LayerRef TimeDistributed(const LayerRef& layer, const TimeDistributedOptions& options = {});

}  // namespace cohort::keras
