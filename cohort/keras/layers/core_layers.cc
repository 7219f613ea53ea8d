// The layers Dense, Activation, Dropout, Embedding and Masking, and InputLayer. Each class declares its weights in
// Build, computes in Call, and converts its options to and from files in Config and FromConfig. The table of makers is
// at the end.
#include "cohort/keras/layers/core_layers.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/input_layer.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/select.h"

namespace cohort::keras {
namespace {

class DenseLayer final : public Layer {
 public:
  DenseLayer(int64_t units, const DenseOptions& options)
      : Layer("Dense", options.name, options.trainable), units_(units), options_(options) {
    if (units <= 0) throw InvalidArgumentError(StrCat("[keras/dense] expected units > 0; got ", units));
  }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const LayerInput& input = OnlyInput(inputs);
    if (input.shape.rank() < 2) {
      throw InvalidArgumentError(StrCat("[keras/dense] expected an input [batch, ..., in]; got shape ", input.shape));
    }
    std::vector<WeightSpec> weights = {{.name = "kernel",
                                        .shape = Shape{KnownDim(input, -1), units_},
                                        .initializer = options_.kernel_initializer,
                                        .regularizer = options_.kernel_regularizer}};
    if (options_.use_bias) {
      weights.push_back({.name = "bias",
                         .shape = Shape{units_},
                         .initializer = options_.bias_initializer,
                         .regularizer = options_.bias_regularizer});
    }
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Shape shape = inputs[0].shape();
    const int64_t in = shape.dim(shape.rank() - 1);
    Output x = ctx.Computed(inputs[0]);
    if (shape.rank() != 2) x = ops::Reshape(x, {-1, in});
    x = ops::MatMul(x, ctx.weight("kernel"));
    if (options_.use_bias) x = ops::BiasAdd(x, ctx.weight("bias"));
    x = options_.activation(x);
    if (shape.rank() == 2) return {x};
    Shape result = shape;
    result.set_dim(shape.rank() - 1, units_);
    return {ops::Reshape(x, ReshapeDims(result))};
  }

  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override {
    return {{"units", units_},
            {"activation", options_.activation.Serialized()},
            {"use_bias", options_.use_bias},
            {"kernel_initializer", options_.kernel_initializer.Serialized()},
            {"bias_initializer", options_.bias_initializer.Serialized()},
            {"kernel_regularizer", options_.kernel_regularizer.Serialized()},
            {"bias_regularizer", options_.bias_regularizer.Serialized()},
            {"kernel_constraint", nullptr},
            {"bias_constraint", nullptr}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    DenseOptions options;
    ReadWeighted(reader, options);
    Read(reader, "activation", options.activation);
    reader.Read("use_bias", options.use_bias);
    Read(reader, "kernel_initializer", options.kernel_initializer);
    Read(reader, "bias_initializer", options.bias_initializer);
    Read(reader, "kernel_regularizer", options.kernel_regularizer);
    Read(reader, "bias_regularizer", options.bias_regularizer);
    return Dense(reader.Required("units").AsInt(), options);
  }

 private:
  const int64_t units_;
  const DenseOptions options_;
};

class ActivationLayer final : public Layer {
 public:
  ActivationLayer(const ActivationFunction& activation, const LayerOptions& options)
      : Layer("Activation", options.name), activation_(activation) {}
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    return {activation_(inputs.at(0))};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override { return {{"activation", activation_.Serialized()}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    ActivationFunction activation;
    Read(reader, "activation", activation);
    return Activation(activation, {.name = ReadName(reader)});
  }

 private:
  const ActivationFunction activation_;
};

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(double rate, const DropoutOptions& options)
      : Layer("Dropout", options.name), rate_(rate), seed_(options.seed) {
    if (!(rate >= 0 && rate < 1)) {
      throw InvalidArgumentError(StrCat("[keras/dropout] expected a rate in [0, 1); got ", rate));
    }
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {ctx.training() ? ops::StatelessDropout(inputs.at(0), rate_, ctx.StepSeed(seed_)) : inputs.at(0)};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override {
    return {{"rate", rate_}, {"seed", seed_ == 0 ? ConfigValue() : ConfigValue(seed_)}, {"noise_shape", nullptr}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    DropoutOptions options = {.name = ReadName(reader)};
    options.seed = ReadSeed(reader);
    reader.OnlyDefault("noise_shape", nullptr);
    return Dropout(reader.Required("rate").AsDouble(), options);
  }

 private:
  const double rate_;
  const int64_t seed_;
};

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options)
      : Layer("Embedding", options.name, options.trainable),
        input_dim_(input_dim),
        output_dim_(output_dim),
        options_(options) {
    if (input_dim <= 0 || output_dim <= 0) {
      throw InvalidArgumentError(
          StrCat("[keras/embedding] expected positive dimensions; got ", input_dim, " x ", output_dim));
    }
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckIndices(OnlyInput(inputs), "Embedding");
    return {{.name = "embeddings",
             .shape = Shape{input_dim_, output_dim_},
             .initializer = options_.embeddings_initializer,
             .regularizer = options_.embeddings_regularizer}};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    Output indices = inputs[0];
    if (indices.dtype() != DType::kInt32 && indices.dtype() != DType::kInt64) {
      indices = ops::Cast(indices, DType::kInt32);
    }
    const Output rows = ctx.Rows("embeddings", indices);
    return {options_.mask_zero ? ctx.WithMask(rows, ops::NotEqual(inputs[0], 0)) : rows};
  }
  DType InputDType() const override { return DType::kInt64; }
  ConfigValue::Object Config() const override {
    return {{"input_dim", input_dim_},
            {"output_dim", output_dim_},
            {"embeddings_initializer", options_.embeddings_initializer.Serialized()},
            {"embeddings_regularizer", options_.embeddings_regularizer.Serialized()},
            {"activity_regularizer", nullptr},
            {"embeddings_constraint", nullptr},
            {"mask_zero", options_.mask_zero}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    EmbeddingOptions options;
    ReadWeighted(reader, options);
    Read(reader, "embeddings_initializer", options.embeddings_initializer);
    Read(reader, "embeddings_regularizer", options.embeddings_regularizer);
    reader.Read("mask_zero", options.mask_zero);
    return Embedding(reader.Required("input_dim").AsInt(), reader.Required("output_dim").AsInt(), options);
  }

 private:
  const int64_t input_dim_;
  const int64_t output_dim_;
  const EmbeddingOptions options_;
};

class MaskingLayer final : public Layer {
 public:
  explicit MaskingLayer(const MaskingOptions& options)
      : Layer("Masking", options.name), mask_value_(options.mask_value) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    if (OnlyInput(inputs).shape.rank() >= 2) return {};
    throw InvalidArgumentError(
        StrCat("[keras/masking] expected an input [batch, ..., features]; got shape ", inputs[0].shape));
  }
  Output Call(CallContext& ctx, Output x) const override {
    const Output mask = ops::Any(ops::NotEqual(x, mask_value_), {-1});
    return ctx.WithMask(ops::SelectV2(ops::ExpandDims(mask, -1), x, 0), mask);
  }
  ConfigValue::Object Config() const override { return {{"mask_value", mask_value_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    MaskingOptions options = {.name = ReadName(reader)};
    reader.Read("mask_value", options.mask_value);
    return Masking(options);
  }

 private:
  const double mask_value_;
};

}  // namespace

ConfigValue::Object InputLayer::Config() const {
  return {{"batch_shape", ShapeInFile(spec_.shape)},
          {"dtype", std::string(DTypeName(spec_.dtype))},
          {"sparse", false},
          {"ragged", false},
          {"optional", false}};
}

LayerRef InputLayer::FromConfig(ConfigReader& reader) {
  const std::string name = ReadName(reader);
  DType dtype = DType::kFloat32;
  reader.ReadBy("dtype", [&](const ConfigValue& value) {
    dtype = DTypeFromName(value.AsString());
    if (dtype == DType::kInvalid) {
      throw InvalidArgumentError(
          StrCat("[keras/serialization] expected inputs of numbers or strings; got ", value.ToJson()));
    }
  });
  reader.OnlyDefault("sparse", false);
  reader.OnlyDefault("ragged", false);
  reader.OnlyDefault("optional", false);
  const Shape shape = ShapeFromFile(reader.Required("batch_shape"));
  if (shape.rank() < 1) throw InvalidArgumentError("[keras/serialization] expected inputs [batch, ...]; got a scalar");
  return LayerRef(std::make_shared<const InputLayer>(shape.Sub(1, shape.rank()), dtype, name));
}

std::vector<LayerMaker> CoreLayerMakers() {
  return {{"InputLayer", InputLayer::FromConfig},      {"Dense", DenseLayer::FromConfig},
          {"Activation", ActivationLayer::FromConfig}, {"Dropout", DropoutLayer::FromConfig},
          {"Embedding", EmbeddingLayer::FromConfig},   {"Masking", MaskingLayer::FromConfig}};
}

LayerTensor Input(const Shape& shape, const InputOptions& options) {
  const auto layer = std::make_shared<const InputLayer>(shape, options.dtype, options.name);
  const auto call = std::make_shared<const LayerCall>(LayerCall{LayerRef(layer), {}});
  return LayerTensor(call, 0, layer->spec());
}

LayerRef Dense(int64_t units, const DenseOptions& options) {
  return MakeLayer<DenseLayer>(units, options).WithInputShape(options.input_shape);
}
LayerRef Activation(const ActivationFunction& activation, const LayerOptions& options) {
  return MakeLayer<ActivationLayer>(activation, options).WithInputShape(options.input_shape);
}
LayerRef Dropout(double rate, const DropoutOptions& options) { return MakeLayer<DropoutLayer>(rate, options); }
LayerRef Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options) {
  return MakeLayer<EmbeddingLayer>(input_dim, output_dim, options);
}
LayerRef Masking(const MaskingOptions& options) {
  return MakeLayer<MaskingLayer>(options).WithInputShape(options.input_shape);
}

}  // namespace cohort::keras
