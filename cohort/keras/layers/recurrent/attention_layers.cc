// MultiHeadAttention, Attention and AdditiveAttention. Four layers inside of MultiHeadAttention have its weights, as in
// Keras: three take the inputs apart into heads, and one puts the heads together. Products of all examples and heads
// are made at once.
#include "cohort/keras/layers/recurrent/attention_layers.h"

#include <cmath>
#include <type_traits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/compound_layer.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/select.h"
#include "cohort/ops/softmax.h"

namespace cohort::keras {
namespace {

// Returns a matrix [t, s] for scores [..., t, s]: 0 where the query may attend, and a number far below all scores
// elsewhere.
Output Future(Graph& graph, const Shape& scores) {
  const int64_t rows = scores.dim(scores.rank() - 2), columns = scores.dim(scores.rank() - 1);
  std::vector<float> values;
  values.reserve(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) values.push_back(column <= row ? 0.0f : -1e9f);
  }
  return ops::Const(graph, values, Shape{rows, columns});
}

// Returns a bool matrix [t, s] for scores [..., t, s]: true if the query may attend to the step.
Output Past(Graph& graph, const Shape& scores) {
  const int64_t rows = scores.dim(scores.rank() - 2), columns = scores.dim(scores.rank() - 1);
  std::vector<bool> values;
  values.reserve(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) values.push_back(column <= row);
  }
  return ops::Const(graph, Tensor::FromValues(values, Shape{rows, columns}));
}

// Returns the mask of input `i`, [batch, steps], with another shape, or an Output that is not valid if there is none.
Output ShapedMask(const CallContext& ctx, size_t i, const std::vector<int64_t>& shape) {
  const Output mask = ctx.mask(i);
  if (!mask.valid()) return mask;
  if (mask.shape().rank() != 2) {
    throw InvalidArgumentError(StrCat("[keras/attention] expected a mask [batch, steps]; got shape ", mask.shape()));
  }
  return ops::Reshape(mask, shape);
}

// Returns x and y if both are valid, or the one that is.
Output And(Output x, Output y) {
  if (!x.valid() || !y.valid()) return x.valid() ? x : y;
  return ops::LogicalAnd(x, y);
}

Output AsFloat32(Output scores) {
  return scores.dtype() == DType::kBfloat16 ? ops::Cast(scores, DType::kFloat32) : scores;
}

// Returns the product of the weights [..., t, s] of the steps and a value [..., s, dim]. In training, `dropout` of the
// weights are zeros.
template <typename Options>
Output Weighted(CallContext& ctx, Output weights, Output value, const Options& options) {
  if (ctx.training() && options.dropout > 0) {
    weights = ops::StatelessDropout(weights, options.dropout, ctx.StepSeed(options.seed));
  }
  return ops::BatchMatMul(weights, value);
}

// Returns softmax(scores) value, for scores [..., t, s]. If `allowed` is valid, it is a bool for each score: scores for
// which it is false are 1e9 less.
template <typename Options>
Output Attended(CallContext& ctx, Output scores, Output value, const Options& options, Output allowed = {}) {
  scores = AsFloat32(scores);
  if (allowed.valid()) {
    scores = ops::SelectV2(allowed, scores, ops::Sub(scores, 1e9));
  } else if (options.use_causal_mask) {
    scores = ops::Add(scores, Future(ctx.graph(), scores.shape()));
  }
  return Weighted(ctx, ctx.Computed(ops::Softmax(scores)), value, options);
}

void CheckDropout(double rate) {
  if (rate >= 0 && rate < 1) return;
  throw InvalidArgumentError(StrCat("[keras/attention] expected a rate in [0, 1); got ", rate));
}

// Throws InvalidArgumentError unless the inputs are a query, a value and perhaps a key, the last two with equally many
// steps.
void CheckInputs(const std::vector<LayerInput>& inputs) {
  if (inputs.size() != 2 && inputs.size() != 3) {
    throw InvalidArgumentError(
        StrCat("[keras/attention] expected {query, value} or {query, value, key}; got ", inputs.size(), " inputs"));
  }
  for (const LayerInput& input : inputs) {
    CheckInputRank(input, 3, "[batch, steps, features]");
    KnownDim(input, 1);
    KnownDim(input, 2);
  }
  if (inputs.back().shape.dim(1) == inputs[1].shape.dim(1)) return;
  throw InvalidArgumentError(StrCat("[keras/attention] expected a key with as many steps as the value; got shapes ",
                                    inputs[1].shape, " of the value and ", inputs[2].shape, " of the key"));
}

// The layers inside have Keras's class name. Both multiply x [batch, steps, in] by a kernel with three dimensions.
class ProjectionLayer : public Layer {
 protected:
  ProjectionLayer(const char* name, const MultiHeadAttentionOptions& options)
      : Layer("EinsumDense", name, options.trainable), options_(options) {}

  std::vector<WeightSpec> Weights(const Shape& kernel, const Shape& bias) const {
    std::vector<WeightSpec> weights = {{.name = "kernel",
                                        .shape = kernel,
                                        .initializer = options_.kernel_initializer,
                                        .regularizer = options_.kernel_regularizer}};
    if (options_.use_bias) {
      weights.push_back({.name = "bias",
                         .shape = bias,
                         .initializer = options_.bias_initializer,
                         .regularizer = options_.bias_regularizer});
    }
    return weights;
  }

  // Returns x kernel + bias, [batch * steps, out].
  Output Product(CallContext& ctx, Output x, int64_t in, int64_t out) const {
    const Output kernel = ops::Reshape(ctx.weight("kernel"), {in, out});
    const Output y = ops::MatMul(ops::Reshape(x, {-1, in}), kernel);
    return options_.use_bias ? ops::BiasAdd(y, ops::Reshape(ctx.weight("bias"), {out})) : y;
  }

  const MultiHeadAttentionOptions options_;
};

// [batch, steps, in] becomes [batch, heads, steps, size].
class HeadsLayer final : public ProjectionLayer {
 public:
  HeadsLayer(const char* name, int64_t heads, int64_t size, const MultiHeadAttentionOptions& options)
      : ProjectionLayer(name, options), heads_(heads), size_(size) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    return Weights(Shape{KnownDim(OnlyInput(inputs), 2), heads_, size_}, Shape{heads_, size_});
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Shape& shape = inputs[0].shape();
    const Output y = Product(ctx, inputs[0], shape.dim(2), heads_ * size_);
    return {ops::Transpose(ops::Reshape(y, {-1, shape.dim(1), heads_, size_}), {0, 2, 1, 3})};
  }

 private:
  const int64_t heads_, size_;
};

// [batch, heads, steps, size] becomes [batch, steps, out]. If the options do not say `out`, it is the last dimension of
// the second input, the query.
class MergedHeadsLayer final : public ProjectionLayer {
 public:
  explicit MergedHeadsLayer(const MultiHeadAttentionOptions& options) : ProjectionLayer("attention_output", options) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const int64_t out = Out(inputs.at(1).shape);
    return Weights(Shape{KnownDim(inputs[0], 1), KnownDim(inputs[0], 3), out}, Shape{out});
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Shape& shape = inputs[0].shape();
    const int64_t out = Out(inputs[1].shape());
    const Output y = Product(ctx, ops::Transpose(inputs[0], {0, 2, 1, 3}), shape.dim(1) * shape.dim(3), out);
    return {ops::Reshape(y, {-1, shape.dim(2), out})};
  }

 private:
  int64_t Out(const Shape& query) const { return options_.output_shape.value_or(query.dim(2)); }
};

// Returns softmax(scores) value, but a step of the query attends only to the steps for which `allowed`, which
// broadcasts to the scores, is true. If there are none, it attends to all alike, or, with dropout, to none.
Output AttendedAllowed(CallContext& ctx, Output scores, Output value, Output allowed,
                       const MultiHeadAttentionOptions& options) {
  Output weights = ctx.Computed(ops::Softmax(ops::SelectV2(allowed, AsFloat32(scores), -1e9)));
  if (options.dropout > 0) weights = ops::SelectV2(allowed, weights, 0);
  return Weighted(ctx, weights, value, options);
}

class MultiHeadAttentionLayer final : public CompoundLayer, public NamedArguments {
 public:
  MultiHeadAttentionLayer(int64_t num_heads, int64_t key_dim, const MultiHeadAttentionOptions& options)
      : CompoundLayer("MultiHeadAttention", options.name, options.trainable),
        num_heads_(num_heads),
        key_dim_(key_dim),
        value_dim_(options.value_dim.value_or(key_dim)),
        options_(options) {
    if (num_heads < 1 || key_dim < 1 || value_dim_ < 1 || options.output_shape.value_or(1) < 1) {
      throw InvalidArgumentError(StrCat(
          "[keras/attention] expected num_heads and dimensions > 0; got num_heads=", num_heads, ", key_dim=", key_dim,
          ", value_dim=", value_dim_, ", output_shape=", options.output_shape.value_or(1)));
    }
    CheckDropout(options.dropout);
    query_ = std::make_shared<const HeadsLayer>("query", num_heads_, key_dim_, options_);
    key_ = std::make_shared<const HeadsLayer>("key", num_heads_, key_dim_, options_);
    value_ = std::make_shared<const HeadsLayer>("value", num_heads_, value_dim_, options_);
    output_ = std::make_shared<const MergedHeadsLayer>(options_);
  }

  std::vector<Part> Parts() const override {
    return {{query_, "query", "query_dense", ""},
            {key_, "key", "key_dense", ""},
            {value_, "value", "value_dense", ""},
            {output_, "attention_output", "output_dense", ""}};
  }
  std::vector<std::string> ArgumentNames() const override { return {"query", "value", "key"}; }
  ConfigValue::Object CallOptions() const override { return {{"use_causal_mask", options_.use_causal_mask}}; }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputs(inputs);
    return {};
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output query = ctx.Call(*query_, inputs[0]);
    const Output key = ctx.Call(*key_, inputs.back());
    const Output value = ctx.Call(*value_, inputs[1]);
    const Output scaled = ops::Mul(query, 1 / std::sqrt(static_cast<double>(key_dim_)));
    const Output scores = ops::BatchMatMul(scaled, key, false, true);  // [batch, heads, t, s]
    const Output allowed = Allowed(ctx, scores.shape(), inputs.size());
    const Output attended = allowed.valid() ? AttendedAllowed(ctx, scores, value, allowed, options_)
                                            : Attended(ctx, scores, value, options_);
    return {ctx.WithMask(ctx.Call(*output_, std::vector<Output>{attended, inputs[0]}).at(0), ctx.mask(0))};
  }

  ConfigValue::Object Config() const override {
    const auto& out = options_.output_shape;
    return {{"num_heads", num_heads_},
            {"key_dim", key_dim_},
            {"value_dim", value_dim_},
            {"dropout", options_.dropout},
            {"use_bias", options_.use_bias},
            {"output_shape", out ? ConfigValue(ConfigValue::List{*out}) : ConfigValue()},
            {"attention_axes", ConfigValue::List{1}},
            {"kernel_initializer", options_.kernel_initializer.Serialized()},
            {"bias_initializer", options_.bias_initializer.Serialized()},
            {"kernel_regularizer", options_.kernel_regularizer.Serialized()},
            {"bias_regularizer", options_.bias_regularizer.Serialized()},
            {"activity_regularizer", nullptr},
            {"kernel_constraint", nullptr},
            {"bias_constraint", nullptr},
            {"seed", options_.seed == 0 ? ConfigValue() : ConfigValue(options_.seed)}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    MultiHeadAttentionOptions options;
    ReadWeighted(reader, options);
    reader.ReadBy("value_dim", [&](const ConfigValue& value) { options.value_dim = value.AsInt(); });
    reader.Read("dropout", options.dropout);
    reader.Read("use_bias", options.use_bias);
    reader.ReadBy("output_shape", [&](const ConfigValue& value) {
      if (value.is_list() && value.AsList().size() != 1) {
        throw InvalidArgumentError(
            StrCat("[keras/serialization] expected an output_shape of one number; got ", value.ToJson()));
      }
      options.output_shape = (value.is_list() ? value.AsList()[0] : value).AsInt();
    });
    reader.OnlyDefault("attention_axes", ConfigValue::List{1});
    reader.OnlyDefault("use_gate", false);
    reader.OnlyDefault("sliding_window", nullptr);
    reader.Ignore("flash_attention");
    Read(reader, "kernel_initializer", options.kernel_initializer);
    Read(reader, "bias_initializer", options.bias_initializer);
    Read(reader, "kernel_regularizer", options.kernel_regularizer);
    Read(reader, "bias_regularizer", options.bias_regularizer);
    options.seed = ReadSeed(reader);
    reader.Read("use_causal_mask", options.use_causal_mask);  // DeserializeLayer takes it from the calls
    const int64_t num_heads = reader.Required("num_heads").AsInt();
    return MultiHeadAttention(num_heads, reader.Required("key_dim").AsInt(), options);
  }

 private:
  // Returns which steps of the value each step of the query may attend to, as bools that broadcast to the scores
  // [batch, heads, t, s]. If there are no masks, the result is not valid.
  Output Allowed(const CallContext& ctx, const Shape& scores, size_t inputs) const {
    const int64_t t = scores.dim(2), s = scores.dim(3);
    Output allowed = And(ShapedMask(ctx, 0, {-1, 1, t, 1}), ShapedMask(ctx, 1, {-1, 1, 1, s}));
    if (inputs == 3) allowed = And(allowed, ShapedMask(ctx, 2, {-1, 1, 1, s}));
    return allowed.valid() && options_.use_causal_mask ? And(allowed, Past(ctx.graph(), scores)) : allowed;
  }

  const int64_t num_heads_, key_dim_, value_dim_;
  const MultiHeadAttentionOptions options_;
  std::shared_ptr<const Layer> query_, key_, value_, output_;
};

// Attention and AdditiveAttention, whose options differ in score_mode.
template <typename Options>
class ScoredAttentionLayer final : public Layer, public NamedArguments {
 public:
  static constexpr bool kAdditive = std::is_same_v<Options, AdditiveAttentionOptions>;

  explicit ScoredAttentionLayer(const Options& options)
      : Layer(kAdditive ? "AdditiveAttention" : "Attention", options.name, options.trainable), options_(options) {
    CheckDropout(options.dropout);
    if constexpr (!kAdditive) {
      if (options.score_mode == "dot" || options.score_mode == "concat") return;
      throw InvalidArgumentError(
          StrCat("[keras/attention] expected a score_mode dot or concat; got '", options.score_mode, "'"));
    }
  }

  std::vector<std::string> ArgumentNames() const override { return {"inputs"}; }
  ConfigValue::Object CallOptions() const override { return {{"use_causal_mask", options_.use_causal_mask}}; }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputs(inputs);
    const int64_t dim = inputs[0].shape.dim(2);
    if (dim != inputs.back().shape.dim(2)) {
      throw InvalidArgumentError(
          StrCat("[keras/attention] expected query and key with the same last dimension; got shapes ", inputs[0].shape,
                 " and ", inputs.back().shape));
    }
    std::vector<WeightSpec> weights;
    if (options_.use_scale && kAdditive) weights.push_back({.name = "scale", .shape = Shape{dim}});
    if (options_.use_scale && !kAdditive) weights.push_back({.name = "scale", .shape = Shape{}, .initializer = "ones"});
    if (Concat()) weights.push_back({.name = "concat_score_weight", .shape = Shape{}, .initializer = "ones"});
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output scores = Scores(ctx, inputs[0], inputs.back());  // [batch, t, s]
    Output allowed = ShapedMask(ctx, 1, {-1, 1, scores.shape().dim(2)});
    if (allowed.valid() && options_.use_causal_mask) allowed = And(allowed, Past(ctx.graph(), scores.shape()));
    const Output attended = Attended(ctx, scores, inputs[1], options_, allowed);
    const Output of_query = ShapedMask(ctx, 0, {-1, scores.shape().dim(1), 1});
    if (!of_query.valid()) return {attended};
    return {ctx.WithMask(ops::SelectV2(of_query, attended, 0), ctx.mask(0))};
  }

  ConfigValue::Object Config() const override {
    ConfigValue::Object config = {{"use_scale", options_.use_scale},
                                  {"dropout", options_.dropout},
                                  {"seed", options_.seed == 0 ? ConfigValue() : ConfigValue(options_.seed)}};
    if constexpr (!kAdditive) config.emplace_back("score_mode", options_.score_mode);
    return config;
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    Options options;
    ReadWeighted(reader, options);
    reader.Read("use_scale", options.use_scale);
    reader.Read("dropout", options.dropout);
    options.seed = ReadSeed(reader);
    if constexpr (!kAdditive) reader.Read("score_mode", options.score_mode);
    reader.Read("use_causal_mask", options.use_causal_mask);  // DeserializeLayer takes it from the calls
    return MakeLayer<ScoredAttentionLayer>(options);
  }

 private:
  bool Concat() const {
    if constexpr (kAdditive)
      return false;
    else
      return options_.score_mode == "concat";
  }

  // Returns the score of each step of the query and each step of the key, [batch, t, s].
  Output Scores(CallContext& ctx, Output query, Output key) const {
    if (!kAdditive && !Concat()) {
      const Output scores = ops::BatchMatMul(query, key, false, true);
      return options_.use_scale ? ops::Mul(scores, ctx.weight("scale")) : scores;
    }
    Output sums = ops::Add(ops::ExpandDims(query, 2), ops::ExpandDims(key, 1));  // [batch, t, s, dim]
    if (Concat()) {
      if (options_.use_scale) sums = ops::Mul(sums, ctx.weight("scale"));
      return ops::Mul(ops::Sum(ops::Tanh(sums), {3}), ctx.weight("concat_score_weight"));
    }
    sums = ops::Tanh(sums);
    return ops::Sum(options_.use_scale ? ops::Mul(sums, ctx.weight("scale")) : sums, {3});
  }

  const Options options_;
};

}  // namespace

LayerRef MultiHeadAttention(int64_t num_heads, int64_t key_dim, const MultiHeadAttentionOptions& options) {
  return MakeLayer<MultiHeadAttentionLayer>(num_heads, key_dim, options);
}

LayerRef Attention(const AttentionOptions& options) {
  return MakeLayer<ScoredAttentionLayer<AttentionOptions>>(options);
}
LayerRef AdditiveAttention(const AdditiveAttentionOptions& options) {
  return MakeLayer<ScoredAttentionLayer<AdditiveAttentionOptions>>(options);
}

std::vector<LayerMaker> AttentionLayerMakers() {
  return {{"MultiHeadAttention", MultiHeadAttentionLayer::FromConfig},
          {"Attention", ScoredAttentionLayer<AttentionOptions>::FromConfig},
          {"AdditiveAttention", ScoredAttentionLayer<AdditiveAttentionOptions>::FromConfig}};
}

}  // namespace cohort::keras
