// Layers of core_layers.h that put several values together.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/string_names.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"

namespace cohort::keras {
namespace {

// An elementwise function of two or more values, which is computed from the left: ((a, b), c).
class MergingLayer final : public Layer {
 public:
  using Function = Output (*)(const Output&, const Output&);
  MergingLayer(const char* class_name, Function function, const LayerOptions& options)
      : Layer(class_name, options.name), function_(function) {}
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    const bool takes_two = class_name() == "Subtract";
    if (inputs.size() < 2 || (takes_two && inputs.size() > 2)) {
      throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name()), "] expected two inputs",
                                        takes_two ? "" : " or more", "; got ", inputs.size()));
    }
    Output merged = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) merged = function_(merged, inputs[i]);
    if (class_name() != "Average") return {merged};
    return {ops::Div(merged, ops::ScalarLike(merged, static_cast<double>(inputs.size())))};
  }
  ConfigValue::Object Config() const override { return {}; }
  template <LayerRef (*kMake)(const LayerOptions&)>
  static LayerRef FromConfig(ConfigReader& reader) {
    return kMake({.name = ReadName(reader)});
  }

 private:
  const Function function_;
};

LayerRef Merging(const char* class_name, MergingLayer::Function function, const LayerOptions& options) {
  return MakeLayer<MergingLayer>(class_name, function, options).WithInputShape(options.input_shape);
}

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

LayerRef Add(const LayerOptions& options) {
  return Merging(
      "Add", [](const Output& x, const Output& y) { return ops::Add(x, y); }, options);
}
LayerRef Subtract(const LayerOptions& options) {
  return Merging(
      "Subtract", [](const Output& x, const Output& y) { return ops::Sub(x, y); }, options);
}
LayerRef Multiply(const LayerOptions& options) {
  return Merging(
      "Multiply", [](const Output& x, const Output& y) { return ops::Mul(x, y); }, options);
}
LayerRef Average(const LayerOptions& options) {
  return Merging(
      "Average", [](const Output& x, const Output& y) { return ops::Add(x, y); }, options);
}
LayerRef Maximum(const LayerOptions& options) {
  return Merging(
      "Maximum", [](const Output& x, const Output& y) { return ops::Maximum(x, y); }, options);
}
LayerRef Minimum(const LayerOptions& options) {
  return Merging(
      "Minimum", [](const Output& x, const Output& y) { return ops::Minimum(x, y); }, options);
}
LayerRef Concatenate(const ConcatenateOptions& options) { return MakeLayer<ConcatenateLayer>(options); }

std::vector<LayerMaker> MergingLayerMakers() {
  return {{"Add", MergingLayer::FromConfig<keras::Add>},         {"Subtract", MergingLayer::FromConfig<Subtract>},
          {"Multiply", MergingLayer::FromConfig<Multiply>},      {"Average", MergingLayer::FromConfig<Average>},
          {"Maximum", MergingLayer::FromConfig<keras::Maximum>}, {"Minimum", MergingLayer::FromConfig<keras::Minimum>},
          {"Concatenate", ConcatenateLayer::FromConfig}};
}

}  // namespace cohort::keras
