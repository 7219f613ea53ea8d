// MultiHeadAttention, Attention, AdditiveAttention.
//
// If the value carries a mask [batch, s], no step of the query attends to its masked steps. The result carries the mask
// of the query. What the masked steps of the query become depends on the layer:
// - In MultiHeadAttention a masked step of the query attends to no step. If a step may attend to none, the result is
//   that of the mean of all values, or, with dropout > 0, that of zeros. The mask of the key is used as that of the
//   value.
// - In Attention and AdditiveAttention it becomes zeros. The mask of the key is not used.
//
// Their option use_causal_mask means that step t of the query attends to the steps 0, ..., t of the value alone. In
// Keras it is an argument of the call. So files have it there, and here all calls of a layer have the same.
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

struct COHORT_EXPORT AttentionOptions {
  bool use_scale = false;
  std::string score_mode = "dot";  // or "concat"
  double dropout = 0.0;            // in training, the probability with which an attention score becomes 0
  int64_t seed = 0;
  bool use_causal_mask = false;
  std::string name;
  bool trainable = true;
};
// Attention without matrices, called as layer({query, value}) or layer({query, value, key}). If no key is given, it is
// the value. The query is [batch, t, dim], the key [batch, s, dim], the value [batch, s, out], and the result
// [batch, t, out]: softmax(scores) value. The score of a step q of the query and a step k of the key is q k', times the
// weight `scale` [] if use_scale is true. With score_mode "concat" it is concat_score_weight [], a weight, times the
// sum of the elements of tanh(scale * (q + k)). Throws InvalidArgumentError for another score_mode and for a rate
// outside of [0, 1). Models throw it for inputs of another rank or of shapes that do not fit.
COHORT_EXPORT LayerRef Attention(const AttentionOptions& options = {});

struct COHORT_EXPORT AdditiveAttentionOptions {
  bool use_scale = true;
  double dropout = 0.0;  // in training, the probability with which an attention score becomes 0
  int64_t seed = 0;
  bool use_causal_mask = false;
  std::string name;
  bool trainable = true;
};
// As Attention, but the score is the sum of the elements of tanh(q + k), each times that of the weight `scale` [dim] if
// use_scale is true.
COHORT_EXPORT LayerRef AdditiveAttention(const AdditiveAttentionOptions& options = {});

}  // namespace cohort::keras
