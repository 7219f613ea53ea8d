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

// What makes a merging layer: an elementwise function of two values, which is computed from the left: ((a, b), c).
struct Merge {
  const char* class_name;
  Output (*function)(const Output&, const Output&);
  bool takes_only_two = false;
  bool divides = false;  // by the number of inputs, at the end
};

class MergingLayer final : public Layer {
 public:
  MergingLayer(const Merge& merge, const LayerOptions& options)
      : Layer(merge.class_name, options.name), merge_(merge) {}
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    if (inputs.size() < 2 || (merge_.takes_only_two && inputs.size() > 2)) {
      throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name()), "] expected two inputs",
                                        merge_.takes_only_two ? "" : " or more", "; got ", inputs.size()));
    }
    Output merged = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) merged = merge_.function(merged, inputs[i]);
    if (!merge_.divides) return {merged};
    return {ops::Div(merged, ops::ScalarLike(merged, static_cast<double>(inputs.size())))};
  }
  ConfigValue::Object Config() const override { return {}; }
  template <LayerRef (*kMake)(const LayerOptions&)>
  static LayerRef FromConfig(ConfigReader& reader) {
    return kMake({.name = ReadName(reader)});
  }

 private:
  const Merge merge_;
};

LayerRef Merging(const Merge& merge, const LayerOptions& options) {
  return MakeLayer<MergingLayer>(merge, options).WithInputShape(options.input_shape);
}
Output Sum(const Output& x, const Output& y) { return ops::Add(x, y); }

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

LayerRef Add(const LayerOptions& options) { return Merging({"Add", Sum}, options); }
LayerRef Subtract(const LayerOptions& options) {
  const auto difference = [](const Output& x, const Output& y) { return ops::Sub(x, y); };
  return Merging({.class_name = "Subtract", .function = difference, .takes_only_two = true}, options);
}
LayerRef Multiply(const LayerOptions& options) {
  return Merging({"Multiply", [](const Output& x, const Output& y) { return ops::Mul(x, y); }}, options);
}
LayerRef Average(const LayerOptions& options) {
  return Merging({.class_name = "Average", .function = Sum, .divides = true}, options);
}
LayerRef Maximum(const LayerOptions& options) {
  return Merging({"Maximum", [](const Output& x, const Output& y) { return ops::Maximum(x, y); }}, options);
}
LayerRef Minimum(const LayerOptions& options) {
  return Merging({"Minimum", [](const Output& x, const Output& y) { return ops::Minimum(x, y); }}, options);
}
LayerRef Concatenate(const ConcatenateOptions& options) { return MakeLayer<ConcatenateLayer>(options); }

std::vector<LayerMaker> MergingLayerMakers() {
  return {{"Add", MergingLayer::FromConfig<keras::Add>},         {"Subtract", MergingLayer::FromConfig<Subtract>},
          {"Multiply", MergingLayer::FromConfig<Multiply>},      {"Average", MergingLayer::FromConfig<Average>},
          {"Maximum", MergingLayer::FromConfig<keras::Maximum>}, {"Minimum", MergingLayer::FromConfig<keras::Minimum>},
          {"Concatenate", ConcatenateLayer::FromConfig}};
}

}  // namespace cohort::keras
