#include "cohort/keras/layers/layer_instance.h"

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/string_names.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"

namespace cohort::keras {

std::vector<size_t> WeightsBelow(const std::vector<ModelWeight>& weights, const std::string& layer) {
  std::vector<size_t> below;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (layer.empty() || weights[i].path.starts_with(layer + "/")) below.push_back(i);
  }
  return below;
}

WeightStore::WeightStore(const WeightStore& first, const std::function<ops::Variable(const ops::Variable&)>& local)
    : graph_(first.graph_), prefix_(first.prefix_), weights_(first.weights_), by_path_(first.by_path_), frozen_(true) {
  for (ModelWeight& weight : weights_) weight.variable = local(weight.variable);
}

const ModelWeight& WeightStore::Get(const std::string& layer_path, const WeightSpec& spec, bool trainable) {
  const std::string path = layer_path.empty() ? spec.name : layer_path + "/" + spec.name;
  const auto found = by_path_.find(path);
  if (found != by_path_.end()) {
    const ModelWeight& weight = weights_[found->second];
    if (weight.spec.shape == spec.shape) return weight;
    throw InvalidArgumentError(StrCat("[keras/layer] expected inputs for which weight '", path, "' has the shape ",
                                      weight.spec.shape, " that it was built with; got inputs that need ", spec.shape,
                                      "; a layer that is used twice needs inputs of one shape"));
  }
  if (frozen_) {
    throw InvalidArgumentError(StrCat("[keras/layer] expected weight '", path,
                                      "' to be declared whenever the layer is called; it was not when the model was "
                                      "built, for inference: declare it in training and in inference"));
  }
  ModelWeight weight{path, layer_path, spec, spec.trainable && trainable, {}};
  const ops::Initializer initializer = [&spec](const ops::InitializerRequest& request) {
    ops::InitializerRequest with_fans = request;
    with_fans.fans = spec.fans;
    return spec.initializer.function()(with_fans);
  };
  const NameScope root(graph_, "");
  weight.variable = ops::GetVariable(graph_, prefix_ + path, spec.shape, spec.dtype, initializer, spec.trainable);
  by_path_[path] = weights_.size();
  weights_.push_back(std::move(weight));
  return weights_.back();
}

void WeightStore::SetTrainable(const std::map<std::string, bool>& trainable) {
  for (ModelWeight& weight : weights_) weight.trainable = trainable.at(weight.path);
}

Output WeightUpdates::Current(const ops::Variable& variable) const {
  for (const Update& update : all_) {
    if (update.variable == variable) return update.value;
  }
  return variable.value();
}

void WeightUpdates::Set(const ops::Variable& variable, Output value) {
  for (Update& update : all_) {
    if (update.variable == variable) {
      update.value = value;
      return;
    }
  }
  all_.push_back({variable, value});
}

std::string LayerInstance::NameOf(const Layer& layer, const std::string& path) {
  std::string& name = names_[{path, &layer}];
  if (!name.empty()) return name;
  const std::string wanted = layer.name().empty() ? SnakeCase(layer.class_name()) : layer.name();
  name = wanted;
  for (int i = 1; !taken_.insert(StrCat(path, "/", name)).second; ++i) {
    if (layer.name().empty()) {
      name = StrCat(wanted, "_", i);
      continue;
    }
    name.clear();
    throw InvalidArgumentError(StrCat("[keras/layer] expected one layer of each name; got two called '", wanted, "'",
                                      path.empty() ? "" : StrCat(" in '", path, "'")));
  }
  return name;
}

Output LayerInstance::Computed(Output value) const {
  return value.dtype() == options_.compute_dtype ? value : ops::Cast(value, options_.compute_dtype);
}

std::vector<Output> LayerInstance::Add(const Layer& layer, const std::string& path, const std::vector<Output>& given) {
  std::vector<Output> inputs;
  inputs.reserve(given.size());
  for (const Output& value : given) {
    inputs.push_back(IsFloating(value.dtype()) ? Computed(value) : value);
    if (!masks_.empty()) SetMaskOf(inputs.back(), MaskOf(value));
  }
  std::vector<LayerInput> specs;
  specs.reserve(inputs.size());
  for (const Output& input : inputs) specs.push_back({input.dtype(), input.shape()});
  const bool outer_frozen = frozen_;
  frozen_ = frozen_ || !layer.trainable();
  std::vector<Output> outputs;
  try {
    CallContext ctx(*this, path, !frozen_);
    ctx.inputs_ = inputs;
    for (const WeightSpec& spec : layer.Build(specs)) ctx.Declare(spec);
    const NameScope scope(graph(), path.substr(path.rfind('/') + 1));
    outputs = layer.Call(ctx, inputs);
    if (!masks_.empty()) PassMasks(layer, ctx, outputs);
  } catch (const InvalidArgumentError& error) {
    const std::string where = StrCat("layer '", path, "' (", layer.class_name(), ")");
    // A layer inside another one has said it already.
    if (path.empty() || std::string(error.what()).find("layer '" + path) != std::string::npos) throw;
    throw InvalidArgumentError(StrCat(error.what(), "; in ", where));
  }
  frozen_ = outer_frozen;
  values_.push_back({path, outputs});
  layers_.push_back({layer.weak_from_this(), layer.trainable()});
  return outputs;
}

Output LayerInstance::MaskOf(const Output& value) const {
  const auto found = masks_.find({value.node, value.index});
  return found == masks_.end() ? Output() : found->second;
}

void LayerInstance::SetMaskOf(const Output& value, const Output& mask) {
  if (mask.valid()) masks_[{value.node, value.index}] = mask;
}

void LayerInstance::PassMasks(const Layer& layer, const CallContext& ctx, std::vector<Output>& results) {
  const bool passes = layer.supports_masking();
  for (size_t i = 0; i < results.size(); ++i) {
    const bool is_input = ctx.IsInput(results[i]);
    const Output carried = MaskOf(results[i]);
    if (carried.valid() && !is_input) continue;  // by WithMask or from a layer inside
    const Output mask = passes && i < ctx.inputs_.size() ? MaskOf(ctx.inputs_[i]) : Output();
    if (mask == carried) continue;
    if (is_input) results[i] = ops::Identity(results[i]);
    SetMaskOf(results[i], mask);
  }
  if (!options_.warns || passes || ctx.knows_masks_ || ctx.path_.find('/') != std::string::npos) return;
  for (const Output& input : ctx.inputs_) {
    if (!MaskOf(input).valid() || MaskOf(input).shape().rank() < 2) continue;
    LogWarning("keras", StrCat("layer '", ctx.path_, "' (", layer.class_name(),
                               ") gets an input with a mask and does not use it; the layers behind it see no mask"));
    return;
  }
}

std::vector<Output> LayerInstance::Penalties() const {
  std::vector<Output> penalties;
  for (const ModelWeight& weight : weights_.weights()) {
    if (weight.trainable && weight.spec.regularizer.valid())
      penalties.push_back(weight.spec.regularizer.Penalty(weight.variable.value()));
  }
  return penalties;
}

}  // namespace cohort::keras
