// MultiHeadAttention. There are no masks but the causal one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

struct COHORT_EXPORT MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim;  // nullopt: key_dim
  double dropout = 0.0;              // in training, the probability with which an attention score becomes 0
  bool use_bias = true;
  std::optional<int64_t> output_shape;  // the last dimension of the result; nullopt: that of the query
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer;
  Regularizer bias_regularizer;
  int64_t seed = 0;
  // Step t of the query attends to the steps 0, ..., t of the value alone. In Keras this is an argument of the call. So
  // files have it there, and all calls of a layer have the same.
  bool use_causal_mask = false;
  std::string name;
  bool trainable = true;
};
// Attention, called as layer({query, value}) or layer({query, value, key}). If no key is given, it is the value. The
// query is [batch, t, in], value and key are [batch, s, ...], and the result is [batch, t, output]. Each head has
// matrices of its own, with which it computes
//   q = query Wq + bq,  k = key Wk + bk,  v = value Wv + bv,  head = softmax(q k' / sqrt(key_dim)) v.
// The result is the sum of head Wo over the heads, plus bo.
// Weights: query/kernel [in, num_heads, key_dim], query/bias [num_heads, key_dim], and the same for "key" and, with
// value_dim instead of key_dim, for "value"; attention_output/kernel [num_heads, value_dim, output] and
// attention_output/bias [output]. Throws InvalidArgumentError for dimensions below 1 and for a rate outside of [0, 1).
// Models throw it for inputs of another rank, and if value and key differ in s.
COHORT_EXPORT LayerRef MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                                          const MultiHeadAttentionOptions& options = {});

}  // namespace cohort::keras
