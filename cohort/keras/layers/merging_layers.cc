// Layers of core_layers.h that put several values together.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/unit_length.h"
#include "cohort/keras/string_names.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/matmul.h"

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

// Computes with matrices [batch, vectors, size of a vector] of both inputs.
class DotLayer final : public Layer {
 public:
  DotLayer(const DotAxes& axes, const DotOptions& options)
      : Layer("Dot", options.name), axes_(axes), normalize_(options.normalize) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    if (inputs.size() != 2) throw InvalidArgumentError(StrCat("[keras/dot] expected two inputs; got ", inputs.size()));
    const int64_t first = KnownDim(inputs[0], AxisOf(axes_.first, inputs[0].shape));
    const int64_t second = KnownDim(inputs[1], AxisOf(axes_.second, inputs[1].shape));
    if (first == second) return {};
    throw InvalidArgumentError(StrCat("[keras/dot] expected vectors of the same size along the axes ", axes_.first,
                                      " and ", axes_.second, "; got the inputs ", inputs[0].shape, " and ",
                                      inputs[1].shape));
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    std::vector<int64_t> dims = {-1};
    const Output first = Vectors(ctx.Computed(inputs[0]), axes_.first, dims);
    const Output second = Vectors(ctx.Computed(inputs[1]), axes_.second, dims);
    if (dims.size() == 1) dims.push_back(1);
    return {ops::Reshape(ops::BatchMatMul(first, second, false, true), dims)};
  }
  ConfigValue::Object Config() const override {
    const bool same = axes_.first == axes_.second;
    return {{"axes", same ? ConfigValue(axes_.first) : ConfigValue::List{axes_.first, axes_.second}},
            {"normalize", normalize_}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    DotOptions options = {.name = ReadName(reader)};
    reader.Read("normalize", options.normalize);
    const RowsColumns axes = RowsColumnsOf(reader.Required("axes"));
    return Dot({axes.rows, axes.columns}, options);
  }

 private:
  // Returns the axis as a number from 1 on.
  static int AxisOf(int64_t axis, const Shape& shape) {
    const int64_t counted = axis < 0 ? axis + shape.rank() : axis;
    if (counted > 0 && counted < shape.rank()) return static_cast<int>(counted);
    throw InvalidArgumentError(
        StrCat("[keras/dot] expected an axis of each example; got the axis ", axis, " of an input ", shape));
  }

  // Returns [batch, vectors, size of a vector]. Adds the sizes of the other axes to `dims`.
  Output Vectors(Output x, int64_t axis_or_end, std::vector<int64_t>& dims) const {
    const std::vector<int64_t> sizes = ReshapeDims(x.shape());
    const int axis = AxisOf(axis_or_end, x.shape());
    if (normalize_) x = UnitLength(x, axis, 1e-7);
    std::vector<int64_t> order;
    int64_t vectors = 1;
    for (int i = 0; i < x.shape().rank(); ++i) {
      if (i == axis) continue;
      order.push_back(i);
      if (i == 0) continue;
      dims.push_back(sizes[static_cast<size_t>(i)]);
      vectors *= dims.back();
    }
    order.push_back(axis);
    if (axis != x.shape().rank() - 1) x = ops::Transpose(x, order);
    return ops::Reshape(x, {-1, vectors, sizes[static_cast<size_t>(axis)]});
  }

  const DotAxes axes_;
  const bool normalize_;
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
LayerRef Dot(const DotAxes& axes, const DotOptions& options) { return MakeLayer<DotLayer>(axes, options); }

std::vector<LayerMaker> MergingLayerMakers() {
  return {{"Add", MergingLayer::FromConfig<keras::Add>},         {"Subtract", MergingLayer::FromConfig<Subtract>},
          {"Multiply", MergingLayer::FromConfig<Multiply>},      {"Average", MergingLayer::FromConfig<Average>},
          {"Maximum", MergingLayer::FromConfig<keras::Maximum>}, {"Minimum", MergingLayer::FromConfig<keras::Minimum>},
          {"Concatenate", ConcatenateLayer::FromConfig},         {"Dot", DotLayer::FromConfig}};
}

}  // namespace cohort::keras
