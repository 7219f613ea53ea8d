// Layers of core_layers.h that change shapes, and RepeatVector. Those that pad, crop and enlarge are in
// resizing_layers.cc.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/sequence_layers.h"
#include "cohort/ops/array.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"

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

class PermuteLayer final : public Layer {
 public:
  PermuteLayer(const std::vector<int64_t>& dims, const LayerOptions& options)
      : Layer("Permute", options.name), dims_(dims) {
    std::vector<int64_t> sorted = dims;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] == static_cast<int64_t>(i) + 1) continue;
      throw InvalidArgumentError(StrCat("[keras/permute] expected each of the axes 1 to ", dims.size(),
                                        " once in dims; got [", StrJoin(dims, ","), "]; the batch is not counted"));
    }
  }
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    const Shape& shape = inputs.at(0).shape();
    if (shape.rank() != static_cast<int>(dims_.size()) + 1) {
      throw InvalidArgumentError(StrCat("[keras/permute] expected examples of ", dims_.size(), " axes for dims [",
                                        StrJoin(dims_, ","), "]; got shape ", shape));
    }
    std::vector<int64_t> permutation = {0};
    permutation.insert(permutation.end(), dims_.begin(), dims_.end());
    return {ops::Transpose(inputs[0], permutation)};
  }
  ConfigValue::Object Config() const override { return {{"dims", ConfigValue::List(dims_.begin(), dims_.end())}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    std::vector<int64_t> dims;
    for (const ConfigValue& dim : reader.Required("dims").AsList()) dims.push_back(dim.AsInt());
    return Permute(dims, {.name = ReadName(reader)});
  }

 private:
  const std::vector<int64_t> dims_;
};

class RepeatVectorLayer final : public Layer {
 public:
  RepeatVectorLayer(int64_t n, const LayerOptions& options) : Layer("RepeatVector", options.name), n_(n) {
    if (n <= 0) throw InvalidArgumentError(StrCat("[keras/repeat_vector] expected n > 0; got ", n));
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckInputRank(OnlyInput(inputs), 2, "[batch, features]");
    return {};
  }
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    return {ops::Tile(ops::ExpandDims(inputs[0], 1), {1, n_, 1})};
  }
  ConfigValue::Object Config() const override { return {{"n", n_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    return RepeatVector(reader.Required("n").AsInt(), {.name = ReadName(reader)});
  }

 private:
  const int64_t n_;
};

}  // namespace

LayerRef Flatten(const LayerOptions& options) {
  return MakeLayer<FlattenLayer>(options).WithInputShape(options.input_shape);
}
LayerRef Reshape(const std::vector<int64_t>& target, const LayerOptions& options) {
  return MakeLayer<ReshapeLayer>(target, options).WithInputShape(options.input_shape);
}
LayerRef Permute(const std::vector<int64_t>& dims, const LayerOptions& options) {
  return MakeLayer<PermuteLayer>(dims, options).WithInputShape(options.input_shape);
}
LayerRef RepeatVector(int64_t n, const LayerOptions& options) {
  return MakeLayer<RepeatVectorLayer>(n, options).WithInputShape(options.input_shape);
}

std::vector<LayerMaker> ShapeLayerMakers() {
  return {{"Flatten", FlattenLayer::FromConfig},
          {"Reshape", ReshapeLayer::FromConfig},
          {"Permute", PermuteLayer::FromConfig},
          {"RepeatVector", RepeatVectorLayer::FromConfig}};
}

}  // namespace cohort::keras
