// EmbedReduce, DotInteraction and FeatureCross.
#include "cohort/keras/layers/recommender_layers.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/compound_layer.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

class EmbedReduceLayer final : public Layer, public NamedArguments {
 public:
  EmbedReduceLayer(int64_t input_dim, int64_t output_dim, const EmbedReduceOptions& options)
      : Layer("EmbedReduce", options.name, options.trainable),
        input_dim_(input_dim),
        output_dim_(output_dim),
        options_(options) {
    if (input_dim <= 0 || output_dim <= 0) Fail(StrCat("positive dimensions; got ", input_dim, " x ", output_dim));
    if (options.combiner != "sum" && options.combiner != "mean" && options.combiner != "sqrtn") {
      Fail(StrCat("the combiner \"sum\", \"mean\" or \"sqrtn\"; got \"", options.combiner, "\""));
    }
    const int64_t padding = options.padding_idx.value_or(0);
    if (padding < 0 || padding >= input_dim) Fail(StrCat("a padding_idx in [0, ", input_dim, "); got ", padding));
  }
  std::vector<std::string> ArgumentNames() const override { return {"inputs", "weights"}; }
  bool IsPositional() const override { return true; }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    if (inputs.empty() || inputs.size() > 2)
      Fail(StrCat("ids, or ids and their weights; got ", inputs.size(), " inputs"));
    CheckIndices(inputs[0], "EmbedReduce");
    const Shape& ids = inputs[0].shape;
    if (ids.rank() != 1 && ids.rank() != 2) Fail(StrCat("ids [batch, n] or [batch]; got shape ", ids));
    if (inputs.size() == 2 && !inputs[1].shape.IsCompatibleWith(ids)) {
      Fail(StrCat("weights of the shape of the ids, ", ids, "; got shape ", inputs[1].shape));
    }
    return {{.name = "embeddings",
             .shape = Shape{input_dim_, output_dim_},
             .initializer = options_.embeddings_initializer,
             .regularizer = options_.embeddings_regularizer}};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    Output ids = inputs[0];
    if (ids.dtype() != DType::kInt32 && ids.dtype() != DType::kInt64) ids = ops::Cast(ids, DType::kInt32);
    const Output rows = ctx.Rows("embeddings", ids);
    const bool reduces = ids.shape().rank() == 2;
    Output weights = reduces || options_.combiner == "sum" ? WeightsOf(ids, inputs, rows.dtype()) : Output();
    if (!weights.valid()) return {Unweighted(rows, reduces)};
    const Output weighted = ops::Mul(rows, ops::ExpandDims(weights, -1));
    if (!reduces) return {weighted};
    const Output sum = ops::Sum(weighted, {1});
    if (options_.combiner == "sum") return {sum};
    const bool mean = options_.combiner == "mean";
    const Output total = ops::Sum(mean ? weights : ops::Square(weights), {1}, /*keep_dims=*/true);
    return {ops::Mul(sum, InverseOrZero(total, /*of_root=*/!mean))};
  }
  DType InputDType() const override { return DType::kInt64; }
  ConfigValue::Object Config() const override {
    ConfigValue::Object config = {{"input_dim", input_dim_},
                                  {"output_dim", output_dim_},
                                  {"embeddings_initializer", options_.embeddings_initializer.Serialized()},
                                  {"embeddings_regularizer", options_.embeddings_regularizer.Serialized()},
                                  {"activity_regularizer", nullptr},
                                  {"embeddings_constraint", nullptr},
                                  {"mask_zero", false},
                                  {"combiner", options_.combiner}};
    if (options_.padding_idx) config.emplace_back("padding_idx", *options_.padding_idx);
    return config;
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    EmbedReduceOptions options;
    ReadWeighted(reader, options);
    Read(reader, "embeddings_initializer", options.embeddings_initializer);
    Read(reader, "embeddings_regularizer", options.embeddings_regularizer);
    reader.Read("combiner", options.combiner);
    reader.ReadBy("padding_idx", [&](const ConfigValue& value) { options.padding_idx = value.AsInt(); });
    reader.OnlyDefault("mask_zero", false);
    return EmbedReduce(reader.Required("input_dim").AsInt(), reader.Required("output_dim").AsInt(), options);
  }

 private:
  [[noreturn]] static void Fail(const std::string& expected) {
    throw InvalidArgumentError(StrCat("[keras/embed_reduce] expected ", expected));
  }

  // Returns the weights of the ids, or an output that is not valid if all are 1.
  Output WeightsOf(const Output& ids, const std::vector<Output>& inputs, DType dtype) const {
    Output weights;
    if (inputs.size() == 2) weights = ops::Cast(inputs[1], dtype);
    if (!options_.padding_idx) return weights;
    const Output counts = ops::Cast(ops::NotEqual(ids, *options_.padding_idx), dtype);
    return weights.valid() ? ops::Mul(weights, counts) : counts;
  }
  Output Unweighted(const Output& rows, bool reduces) const {
    if (!reduces) return rows;
    const bool mean = options_.combiner == "mean";
    if (mean && rows.shape().dim(1) > 0) return ops::Mean(rows, {1});
    const Output sum = ops::Sum(rows, {1});
    if (options_.combiner == "sum") return sum;
    const Output n = ops::Cast(ops::Slice(ops::ShapeOf(rows), {1}, {1}), rows.dtype());
    return ops::Mul(sum, InverseOrZero(n, /*of_root=*/!mean));
  }

  // Returns 1 / x, or 1 / sqrt(x), or 0 where x is 0. Its gradient is 0 there, and not NaN, because no node divides by
  // 0.
  static Output InverseOrZero(const Output& x, bool of_root) {
    const Output zero = ops::Equal(x, 0), one = ops::OnesLike(x), safe = ops::SelectV2(zero, one, x);
    return ops::SelectV2(zero, ops::ZerosLike(x), of_root ? ops::Rsqrt(safe) : ops::Div(one, safe));
  }

  const int64_t input_dim_;
  const int64_t output_dim_;
  const EmbedReduceOptions options_;
};

class DotInteractionLayer final : public Layer {
 public:
  explicit DotInteractionLayer(const DotInteractionOptions& options)
      : Layer("DotInteraction", options.name), options_(options) {}
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    if (inputs.size() < 2) {
      throw InvalidArgumentError(StrCat("[keras/dot_interaction] expected two inputs or more; got ", inputs.size()));
    }
    for (const Output& input : inputs) {
      if (input.shape().rank() == 2 && input.shape().IsCompatibleWith(inputs[0].shape())) continue;
      throw InvalidArgumentError(StrCat("[keras/dot_interaction] expected inputs [batch, features] of one shape; got ",
                                        inputs[0].shape(), " and ", input.shape()));
    }
    const auto k = static_cast<int64_t>(inputs.size());
    const Output features = ops::Pack(inputs, 1);  // [batch, k, features]
    const Output products = ops::BatchMatMul(features, features, /*adj_x=*/false, /*adj_y=*/true);
    const Output flat = ops::Reshape(products, {-1, k * k});
    std::vector<int32_t> places;
    std::vector<float> below(static_cast<size_t>(k * k), 0.0f);
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < (options_.self_interaction ? i + 1 : i); ++j) {
        places.push_back(static_cast<int32_t>(i * k + j));
        below[static_cast<size_t>(i * k + j)] = 1.0f;
      }
    }
    Graph& graph = flat.graph();
    if (options_.skip_gather) return {ops::Mul(flat, ops::Cast(ops::Const(graph, below), flat.dtype()))};
    return {ops::Gather(flat, ops::Const(graph, places), 1)};
  }
  ConfigValue::Object Config() const override {
    return {{"self_interaction", options_.self_interaction}, {"skip_gather", options_.skip_gather}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    DotInteractionOptions options = {.name = ReadName(reader)};
    reader.Read("self_interaction", options.self_interaction);
    reader.Read("skip_gather", options.skip_gather);
    return DotInteraction(options);
  }

 private:
  const DotInteractionOptions options_;
};

class FeatureCrossLayer final : public Layer, public NamedArguments {
 public:
  explicit FeatureCrossLayer(const FeatureCrossOptions& options)
      : Layer("FeatureCross", options.name, options.trainable), options_(options) {
    if (!(options.diag_scale >= 0)) Fail(StrCat("a diag_scale that is not negative; got ", options.diag_scale));
    if (options.projection_dim && *options.projection_dim < 1) {
      Fail(StrCat("a positive projection_dim; got ", *options.projection_dim));
    }
    if (options.projection_dim) {
      down_ = Dense(*options.projection_dim, {.use_bias = false,
                                              .kernel_initializer = options.kernel_initializer,
                                              .kernel_regularizer = options.kernel_regularizer,
                                              .name = "down_proj_dense"});
    }
  }
  std::vector<std::string> ArgumentNames() const override { return {"x0", "x"}; }
  bool IsPositional() const override { return true; }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    if (inputs.empty() || inputs.size() > 2) Fail(StrCat("x0 and x, or x0 alone; got ", inputs.size(), " inputs"));
    const Output x0 = inputs[0], x = inputs.back();
    const Shape& shape = x0.shape();
    if (shape.rank() < 2 || !shape.IsCompatibleWith(x.shape()) || shape.dim(shape.rank() - 1) < 0) {
      Fail(StrCat("inputs [batch, ..., features] of one shape; got ", shape, " and ", x.shape()));
    }
    Output product = options_.projection_dim ? ctx.Call(**down_, x) : x;
    product = ctx.Call(*Out(shape.dim(shape.rank() - 1)), product);
    if (options_.diag_scale > 0) product = ops::Add(product, ops::Mul(x, options_.diag_scale));
    return {ops::Add(ops::Mul(x0, product), x)};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override {
    return {{"projection_dim", options_.projection_dim ? ConfigValue(*options_.projection_dim) : ConfigValue()},
            {"diag_scale", options_.diag_scale},
            {"use_bias", options_.use_bias},
            {"pre_activation", options_.pre_activation.Serialized()},
            {"kernel_initializer", options_.kernel_initializer.Serialized()},
            {"bias_initializer", options_.bias_initializer.Serialized()},
            {"kernel_regularizer", options_.kernel_regularizer.Serialized()},
            {"bias_regularizer", options_.bias_regularizer.Serialized()}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    FeatureCrossOptions options;
    ReadWeighted(reader, options);
    reader.ReadBy("projection_dim", [&](const ConfigValue& value) { options.projection_dim = value.AsInt(); });
    reader.Read("diag_scale", options.diag_scale);
    reader.Read("use_bias", options.use_bias);
    Read(reader, "pre_activation", options.pre_activation);
    Read(reader, "kernel_initializer", options.kernel_initializer);
    Read(reader, "bias_initializer", options.bias_initializer);
    Read(reader, "kernel_regularizer", options.kernel_regularizer);
    Read(reader, "bias_regularizer", options.bias_regularizer);
    return FeatureCross(options);
  }

 private:
  [[noreturn]] static void Fail(const std::string& expected) {
    throw InvalidArgumentError(StrCat("[keras/feature_cross] expected ", expected));
  }

  // Returns the layer for inputs of this width. It is always the same one, so that two calls in a model share its
  // weights.
  LayerRef Out(int64_t width) const {
    const std::lock_guard lock(mutex_);
    const auto found = out_.find(width);
    if (found != out_.end()) return found->second;
    const LayerRef made = Dense(width, {.activation = options_.pre_activation,
                                        .use_bias = options_.use_bias,
                                        .kernel_initializer = options_.kernel_initializer,
                                        .bias_initializer = options_.bias_initializer,
                                        .kernel_regularizer = options_.kernel_regularizer,
                                        .bias_regularizer = options_.bias_regularizer,
                                        .name = "dense"});
    return out_.emplace(width, made).first->second;
  }

  const FeatureCrossOptions options_;
  std::optional<LayerRef> down_;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, LayerRef> out_;  // by width; guarded by mutex_
};

}  // namespace

LayerRef EmbedReduce(int64_t input_dim, int64_t output_dim, const EmbedReduceOptions& options) {
  return MakeLayer<EmbedReduceLayer>(input_dim, output_dim, options);
}
LayerRef DotInteraction(const DotInteractionOptions& options) { return MakeLayer<DotInteractionLayer>(options); }
LayerRef FeatureCross(const FeatureCrossOptions& options) { return MakeLayer<FeatureCrossLayer>(options); }

std::vector<LayerMaker> RecommenderLayerMakers() {
  return {{"EmbedReduce", EmbedReduceLayer::FromConfig},
          {"DotInteraction", DotInteractionLayer::FromConfig},
          {"FeatureCross", FeatureCrossLayer::FromConfig}};
}

}  // namespace cohort::keras
