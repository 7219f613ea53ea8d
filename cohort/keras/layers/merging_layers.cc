// Layers of core_layers.h that put several values together.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/unit_length.h"
#include "cohort/keras/string_names.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

// What makes a merging layer: an elementwise function of two values, which is computed from the left: ((a, b), c).
struct Merge {
  const char* class_name;
  Output (*function)(const Output&, const Output&);
  bool takes_only_two = false;
  bool divides = false;  // by the number of inputs, at the end
  // What a masked step does: nothing beside the mask of the result; counts as ones; or is left out, so that the other
  // inputs decide.
  enum class Masked { kCounts, kIsOne, kIsLeftOut } masked = Masked::kCounts;
};

// Returns a mask [batch, steps, ...] with a last dimension of 1, so that it broadcasts against the value.
Output Broadcast(Output mask) { return ops::ExpandDims(mask, -1); }

Output Or(Output x, Output y) { return ops::LogicalOr(x, y); }

// Returns the masks of the inputs. If none has a mask, the result is empty; an input without a mask has an Output that
// is not valid.
std::vector<Output> MasksOf(const CallContext& ctx, size_t inputs) {
  std::vector<Output> masks;
  bool any = false;
  for (size_t i = 0; i < inputs; ++i) {
    masks.push_back(ctx.mask(i));
    any = any || masks.back().valid();
  }
  return any ? masks : std::vector<Output>();
}

class MergingLayer final : public Layer {
 public:
  MergingLayer(const Merge& merge, const LayerOptions& options)
      : Layer(merge.class_name, options.name), merge_(merge) {}
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    if (inputs.size() < 2 || (merge_.takes_only_two && inputs.size() > 2)) {
      throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name()), "] expected two inputs",
                                        merge_.takes_only_two ? "" : " or more", "; got ", inputs.size()));
    }
    const std::vector<Output> masks = MasksOf(ctx, inputs.size());
    // The result has a mask if all inputs have one: a step counts that counts in one of them.
    Output mask;
    if (std::all_of(masks.begin(), masks.end(), [](const Output& one) { return one.valid(); })) {
      for (const Output& one : masks) mask = mask.valid() ? Or(mask, one) : one;
    }
    Output merged = masks.empty() ? Merged(inputs) : MergedWithMasks(inputs, masks, mask);
    if (merge_.divides) merged = ops::Div(merged, ops::ScalarLike(merged, static_cast<double>(inputs.size())));
    return {ctx.WithMask(merged, mask)};
  }
  ConfigValue::Object Config() const override { return {}; }
  template <LayerRef (*kMake)(const LayerOptions&)>
  static LayerRef FromConfig(ConfigReader& reader) {
    return kMake({.name = ReadName(reader)});
  }

 private:
  Output Merged(const std::vector<Output>& inputs) const {
    Output merged = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) merged = merge_.function(merged, inputs[i]);
    return merged;
  }

  // `mask` is that of the result, or not valid.
  Output MergedWithMasks(const std::vector<Output>& inputs, const std::vector<Output>& masks, Output mask) const {
    if (merge_.masked == Merge::Masked::kCounts) return Merged(inputs);
    if (merge_.masked == Merge::Masked::kIsOne) {
      std::vector<Output> factors;
      for (size_t i = 0; i < inputs.size(); ++i) {
        factors.push_back(masks[i].valid() ? ops::SelectV2(Broadcast(masks[i]), inputs[i], 1) : inputs[i]);
      }
      const Output product = Merged(factors);
      return mask.valid() ? ops::SelectV2(Broadcast(mask), product, 0) : product;
    }
    Output merged = inputs[0], counts = masks[0];
    for (size_t i = 1; i < inputs.size(); ++i) {
      const Output x = masks[i].valid() ? ops::SelectV2(Broadcast(masks[i]), inputs[i], merged) : inputs[i];
      if (counts.valid()) merged = ops::SelectV2(Broadcast(counts), merged, x);
      counts = counts.valid() && masks[i].valid() ? Or(counts, masks[i]) : Output();
      merged = merge_.function(merged, x);
    }
    return merged;
  }

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
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    if (inputs.empty()) throw InvalidArgumentError("[keras/concatenate] expected one input or more; got none");
    const Output whole = ops::Concat(inputs, axis_);
    return {ctx.WithMask(whole, JoinedMask(inputs, MasksOf(ctx, inputs.size())))};
  }
  ConfigValue::Object Config() const override { return {{"axis", axis_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    ConcatenateOptions options = {.name = ReadName(reader)};
    reader.Read("axis", options.axis);
    return Concatenate(options);
  }

 private:
  // All steps of an input without a mask count. Along the last axis, a step of the result counts if it does in one of
  // the inputs.
  Output JoinedMask(const std::vector<Output>& inputs, std::vector<Output> masks) const {
    for (size_t i = 0; i < masks.size(); ++i) {
      const int rank = inputs[i].shape().rank();
      if (!masks[i].valid()) {
        std::vector<int64_t> size(static_cast<size_t>(rank), -1);
        size.back() = 1;
        const Output one = ops::Slice(inputs[i], std::vector<int64_t>(size.size(), 0), size);
        masks[i] = ops::Equal(ops::ZerosLike(ops::Squeeze(one, {-1})), 0);
      } else if (masks[i].shape().rank() != rank - 1) {
        throw InvalidArgumentError(StrCat("[keras/concatenate] expected a mask of rank ", rank - 1, " for the input ",
                                          inputs[i].shape(), "; got a mask ", masks[i].shape()));
      }
    }
    if (masks.empty()) return {};
    const int rank = inputs[0].shape().rank();
    if ((axis_ < 0 ? axis_ + rank : axis_) != rank - 1) return ops::Concat(masks, axis_ < 0 ? axis_ + 1 : axis_);
    Output mask = masks[0];
    for (size_t i = 1; i < masks.size(); ++i) mask = Or(mask, masks[i]);
    return mask;
  }

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
  const auto product = [](const Output& x, const Output& y) { return ops::Mul(x, y); };
  return Merging({.class_name = "Multiply", .function = product, .masked = Merge::Masked::kIsOne}, options);
}
LayerRef Average(const LayerOptions& options) {
  return Merging({.class_name = "Average", .function = Sum, .divides = true}, options);
}
LayerRef Maximum(const LayerOptions& options) {
  const auto larger = [](const Output& x, const Output& y) { return ops::Maximum(x, y); };
  return Merging({.class_name = "Maximum", .function = larger, .masked = Merge::Masked::kIsLeftOut}, options);
}
LayerRef Minimum(const LayerOptions& options) {
  const auto smaller = [](const Output& x, const Output& y) { return ops::Minimum(x, y); };
  return Merging({.class_name = "Minimum", .function = smaller, .masked = Merge::Masked::kIsLeftOut}, options);
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
