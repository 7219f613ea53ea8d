// Layers of core_layers.h that change shapes or put several values together.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/join.h"

namespace cohort::keras {
namespace {

class FlattenLayer final : public Layer {
 public:
  explicit FlattenLayer(const LayerOptions& options) : Layer("Flatten", options.name) {}
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    const Shape& shape = inputs.at(0).shape();
    if (shape.rank() == 2) return {inputs[0]};
    const std::vector<int64_t> dims = ReshapeDims(shape);
    int64_t size = 1;
    for (size_t i = 1; i < dims.size(); ++i) size *= dims[i];
    return {ops::Reshape(inputs[0], {-1, size})};
  }
  ConfigValue::Object Config() const override { return {{"data_format", "channels_last"}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    reader.OnlyDefault("data_format", "channels_last");
    return Flatten({.name = ReadName(reader)});
  }
};

class ReshapeLayer final : public Layer {
 public:
  ReshapeLayer(const std::vector<int64_t>& target, const LayerOptions& options)
      : Layer("Reshape", options.name), target_(target) {}

  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    const std::vector<int64_t> from = ReshapeDims(inputs.at(0).shape());
    int64_t size = 1;
    for (size_t i = 1; i < from.size(); ++i) size *= from[i];
    std::vector<int64_t> dims = {-1};
    int64_t known = 1;
    size_t open = 0;
    for (const int64_t dim : target_) {
      if (dim >= 0)
        known *= dim;
      else
        ++open;
    }
    const bool fits = open == 0 ? known == size : open == 1 && known > 0 && size % known == 0;
    if (!fits) {
      throw InvalidArgumentError(StrCat("[keras/reshape] expected a target shape of the ", size,
                                        " elements of an example ", inputs[0].shape(), "; got [", StrJoin(target_, ","),
                                        "]"));
    }
    for (const int64_t dim : target_) dims.push_back(dim >= 0 ? dim : size / known);
    return {ops::Reshape(inputs[0], dims)};
  }

  ConfigValue::Object Config() const override {
    return {{"target_shape", ConfigValue::List(target_.begin(), target_.end())}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    const Shape target = ShapeFromFile(reader.Required("target_shape"));
    return Reshape({target.dims().begin(), target.dims().end()}, {.name = ReadName(reader)});
  }

 private:
  const std::vector<int64_t> target_;
};

class AddLayer final : public Layer {
 public:
  explicit AddLayer(const LayerOptions& options) : Layer("Add", options.name) {}
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    if (inputs.size() < 2) {
      throw InvalidArgumentError(StrCat("[keras/add] expected two inputs or more; got ", inputs.size()));
    }
    Output sum = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) sum = ops::Add(sum, inputs[i]);
    return {sum};
  }
  ConfigValue::Object Config() const override { return {}; }
  static LayerRef FromConfig(ConfigReader& reader) { return keras::Add({.name = ReadName(reader)}); }
};

class ConcatenateLayer final : public Layer {
 public:
  explicit ConcatenateLayer(const ConcatenateOptions& options)
      : Layer("Concatenate", options.name), axis_(options.axis) {}
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    if (inputs.empty()) throw InvalidArgumentError("[keras/concatenate] expected one input or more; got none");
    return {ops::Concat(inputs, axis_)};
  }
  ConfigValue::Object Config() const override { return {{"axis", axis_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    ConcatenateOptions options = {.name = ReadName(reader)};
    reader.Read("axis", options.axis);
    return Concatenate(options);
  }

 private:
  const int axis_;
};

}  // namespace

LayerRef Flatten(const LayerOptions& options) {
  return MakeLayer<FlattenLayer>(options).WithInputShape(options.input_shape);
}
LayerRef Reshape(const std::vector<int64_t>& target, const LayerOptions& options) {
  return MakeLayer<ReshapeLayer>(target, options).WithInputShape(options.input_shape);
}
LayerRef Add(const LayerOptions& options) { return MakeLayer<AddLayer>(options).WithInputShape(options.input_shape); }
LayerRef Concatenate(const ConcatenateOptions& options) { return MakeLayer<ConcatenateLayer>(options); }

std::vector<LayerMaker> ShapeLayerMakers() {
  return {{"Flatten", FlattenLayer::FromConfig},
          {"Reshape", ReshapeLayer::FromConfig},
          {"Add", AddLayer::FromConfig},
          {"Concatenate", ConcatenateLayer::FromConfig}};
}

}  // namespace cohort::keras
