// Bidirectional and TimeDistributed, which contain layers that the program gives.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/recurrent/recurrent_layer.h"
#include "cohort/keras/layers/recurrent/recurrent_layers.h"
#include "cohort/keras/string_names.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/join.h"
#include "cohort/ops/reduction.h"

namespace cohort::keras {
namespace {

using Order = RecurrentLayer::Order;

std::string NameOf(const Layer& layer) { return layer.name().empty() ? SnakeCase(layer.class_name()) : layer.name(); }

// Returns `prefix` followed by the layer's name, which does not get the prefix a second time.
std::string Prefixed(const std::string& prefix, const Layer& layer) {
  const std::string name = NameOf(layer);
  return name.starts_with(prefix) ? name : prefix + name;
}

const RecurrentLayer& Recurrent(const LayerRef& layer) {
  if (const auto* recurrent = dynamic_cast<const RecurrentLayer*>(&*layer)) return *recurrent;
  throw InvalidArgumentError(
      StrCat("[keras/bidirectional] expected an LSTM, a GRU or a SimpleRNN; got a ", layer->class_name()));
}

LayerRef Forward(const LayerRef& layer) {
  const RecurrentLayer& recurrent = Recurrent(layer);
  return recurrent.Copy(Prefixed("forward_", recurrent), recurrent.go_backwards(), Order::kAsGiven);
}

LayerRef Backward(const LayerRef& layer, const std::optional<LayerRef>& given) {
  if (!given) {
    const RecurrentLayer& recurrent = Recurrent(layer);
    return recurrent.Copy(Prefixed("backward_", recurrent), true, Order::kAsGiven);
  }
  const RecurrentLayer& recurrent = Recurrent(*given);
  const std::string name = recurrent.name().empty() ? Prefixed("backward_", recurrent) : recurrent.name();
  return recurrent.Copy(name, recurrent.go_backwards(), Order::kAsGiven);
}

class BidirectionalLayer final : public CompoundLayer, public NamedArguments {
 public:
  BidirectionalLayer(const LayerRef& layer, const BidirectionalOptions& options)
      : CompoundLayer("Bidirectional", options.name, options.trainable),
        merge_mode_(options.merge_mode),
        forward_(Forward(layer)),
        backward_(Backward(layer, options.backward_layer)) {
    const RecurrentLayer& forward = Recurrent(forward_);
    const RecurrentLayer& backward = Recurrent(backward_);
    if (merge_mode_ && *merge_mode_ != "concat" && *merge_mode_ != "sum" && *merge_mode_ != "mul" &&
        *merge_mode_ != "ave") {
      throw InvalidArgumentError(StrCat(
          "[keras/bidirectional] expected a merge_mode concat, sum, mul, ave, or none; got '", *merge_mode_, "'"));
    }
    if (forward.go_backwards() == backward.go_backwards()) {
      throw InvalidArgumentError(
          StrCat("[keras/bidirectional] expected layers that read in opposite directions; both have go_backwards=",
                 forward.go_backwards() ? "true" : "false"));
    }
    if (forward.return_sequences() != backward.return_sequences() ||
        forward.return_state() != backward.return_state()) {
      throw InvalidArgumentError(
          "[keras/bidirectional] expected layers with the same return_sequences and return_state; they differ");
    }
    if (!options.trainable) SetTrainable(false);
  }

  std::vector<Part> Parts() const override {
    return {{forward_.ptr(), forward_->name(), "forward_layer", "layer"},
            {backward_.ptr(), backward_->name(), "backward_layer", "backward_layer"}};
  }
  std::vector<std::string> ArgumentNames() const override { return {"sequences", "initial_state"}; }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const size_t states = Recurrent(forward_).num_states() + Recurrent(backward_).num_states();
    if (inputs.size() == 1 || inputs.size() == 1 + states) return {};
    throw InvalidArgumentError(StrCat("[keras/bidirectional] expected a sequence, or a sequence and ", states,
                                      " initial states; got ", inputs.size(), " inputs"));
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    std::vector<Output> of_forward = {inputs[0]}, of_backward = {inputs[0]};
    for (size_t i = 1; i < inputs.size(); ++i) {
      (i <= Recurrent(forward_).num_states() ? of_forward : of_backward).push_back(inputs[i]);
    }
    const std::vector<Output> there = ctx.Call(*forward_, of_forward);
    const std::vector<Output> back = ctx.Call(*backward_, of_backward);
    std::vector<Output> results = Merged(there[0], back[0]);
    if (Recurrent(forward_).return_sequences()) results[0] = ctx.WithMask(results[0], ctx.mask(0));
    results.insert(results.end(), there.begin() + 1, there.end());
    results.insert(results.end(), back.begin() + 1, back.end());
    return results;
  }

  ConfigValue::Object Config() const override {
    return {{"merge_mode", merge_mode_ ? ConfigValue(*merge_mode_) : ConfigValue()}};
  }
  static LayerRef FromConfig(ConfigReader& reader, const InnerLayerMaker& inner) {
    BidirectionalOptions options;
    options.name = ReadName(reader);
    reader.Read("trainable", options.trainable);
    if (reader.IsNull("merge_mode")) options.merge_mode = std::nullopt;
    reader.ReadBy("merge_mode", [&](const ConfigValue& value) { options.merge_mode = value.AsString(); });
    reader.ReadBy("backward_layer", [&](const ConfigValue& value) { options.backward_layer = inner(value); });
    return Bidirectional(inner(reader.Required("layer")), options);
  }

 private:
  std::vector<Output> Merged(Output there, Output back) const {
    if (!merge_mode_) return {there, back};
    if (*merge_mode_ == "concat") return {ops::Concat({there, back}, there.shape().rank() - 1)};
    if (*merge_mode_ == "mul") return {ops::Mul(there, back)};
    const Output sum = ops::Add(there, back);
    return {*merge_mode_ == "sum" ? sum : ops::Mul(sum, 0.5)};
  }

  const std::optional<std::string> merge_mode_;
  const LayerRef forward_;
  const LayerRef backward_;
};

class TimeDistributedLayer final : public CompoundLayer {
 public:
  TimeDistributedLayer(const LayerRef& layer, const TimeDistributedOptions& options)
      : CompoundLayer("TimeDistributed", options.name, options.trainable), layer_(layer) {
    if (!options.trainable) SetTrainable(false);
  }

  std::vector<Part> Parts() const override { return {{layer_.ptr(), NameOf(*layer_), "layer", "layer"}}; }
  DType InputDType() const override { return layer_->InputDType(); }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const LayerInput& input = OnlyInput(inputs);
    if (input.shape.rank() < 3) {
      throw InvalidArgumentError(StrCat(
          "[keras/time_distributed] expected an input [batch, steps, ...] of rank 3 or more; got shape ", input.shape));
    }
    KnownDim(input, 1);
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const std::vector<int64_t> dims = ReshapeDims(inputs[0].shape());
    std::vector<int64_t> of_steps = {-1};
    of_steps.insert(of_steps.end(), dims.begin() + 2, dims.end());
    const Output mask = ctx.mask(0);
    Output steps = ops::Reshape(inputs[0], of_steps);
    if (mask.valid()) {
      std::vector<int64_t> of_mask = ReshapeDims(mask.shape());
      of_mask.erase(of_mask.begin());
      of_mask.at(0) = -1;
      steps = ctx.WithMask(steps, ops::Reshape(mask, of_mask));
    }
    std::vector<Output> results;
    for (const Output& result : ctx.Call(*layer_, std::vector<Output>{steps})) {
      const std::vector<int64_t> of_result = ReshapeDims(result.shape());
      std::vector<int64_t> with_steps = {-1, dims[1]};
      with_steps.insert(with_steps.end(), of_result.begin() + 1, of_result.end());
      results.push_back(ops::Reshape(result, with_steps));
    }
    results[0] = ctx.WithMask(results[0], OfSteps(mask, results[0].shape().rank()));
    return results;
  }

  ConfigValue::Object Config() const override { return {}; }
  static LayerRef FromConfig(ConfigReader& reader, const InnerLayerMaker& inner) {
    TimeDistributedOptions options;
    options.name = ReadName(reader);
    reader.Read("trainable", options.trainable);
    return TimeDistributed(inner(reader.Required("layer")), options);
  }

 private:
  // Returns the mask of a result of this rank. If the layer has made one value of each step whose parts have a mask of
  // their own, a step counts of which one part does.
  static Output OfSteps(Output mask, int rank) {
    if (!mask.valid() || mask.shape().rank() < rank) return mask;
    std::vector<int64_t> parts;
    for (int64_t axis = 2; axis < mask.shape().rank(); ++axis) parts.push_back(axis);
    return ops::Any(mask, parts);
  }

  const LayerRef layer_;
};

}  // namespace

LayerRef Bidirectional(const LayerRef& layer, const BidirectionalOptions& options) {
  const std::optional<Shape>& shape = options.input_shape ? options.input_shape : layer.input_shape();
  return MakeLayer<BidirectionalLayer>(layer, options).WithInputShape(shape);
}
LayerRef TimeDistributed(const LayerRef& layer, const TimeDistributedOptions& options) {
  if (layer.input_shape()) {
    throw InvalidArgumentError(
        StrCat("[keras/time_distributed] expected an input_shape among the options of "
               "TimeDistributed; got ",
               *layer.input_shape(), " for the ", layer->class_name(), " inside of it"));
  }
  const LayerRef made = MakeLayer<TimeDistributedLayer>(layer, options);
  WeightOrigin origin = layer.origin();
  origin.part = origin.part.empty() ? NameOf(*layer) : NameOf(*layer) + "/" + origin.part;
  return LayerRef(made.ptr(), std::move(origin)).WithInputShape(options.input_shape);
}

std::vector<WrapperMaker> WrapperLayerMakers() {
  return {{"Bidirectional", BidirectionalLayer::FromConfig}, {"TimeDistributed", TimeDistributedLayer::FromConfig}};
}

}  // namespace cohort::keras
