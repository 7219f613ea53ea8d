#include "cohort/keras/layers/layer_graph.h"

#include <algorithm>
#include <numeric>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/training/model_state.h"

namespace cohort::keras {

LayerGraph::LayerGraph(std::string class_name, std::string name, const std::vector<LayerTensor>& inputs,
                       const std::vector<LayerTensor>& outputs)
    : Layer(std::move(class_name), std::move(name)) {
  if (inputs.empty() || outputs.empty()) {
    throw InvalidArgumentError(
        StrCat("[keras/model] expected inputs and outputs; got ", inputs.size(), " and ", outputs.size()));
  }
  for (const LayerTensor& input : inputs) {
    if (dynamic_cast<const InputLayer*>(input.call()->layer.ptr().get()) == nullptr) {
      throw InvalidArgumentError(StrCat("[keras/model] expected inputs made by Input(); got a result of a ",
                                        input.call()->layer->class_name(), " layer as input ", input_specs_.size()));
    }
    const auto same = [&](const LayerStep& step) { return step.layer.ptr() == input.call()->layer.ptr(); };
    if (std::any_of(steps_.begin(), steps_.end(), same)) {
      throw InvalidArgumentError(
          StrCat("[keras/model] expected every input once; input ", input_specs_.size(), " is given twice"));
    }
    input_specs_.push_back({input.dtype(), input.shape()});
    visited_.push_back(input.call().get());
    steps_.push_back({LayerRef(input.call()->layer.ptr()), {}});
  }
  for (const LayerTensor& output : outputs) {
    outputs_.push_back(Visit(output, nullptr));
    output_specs_.push_back({output.dtype(), output.shape()});
  }
  Sort();
}

void LayerGraph::Sort() {
  // If a layer is used several times, its longest way so far counts for all earlier uses.
  std::vector<size_t> depths(steps_.size(), 0);
  std::map<const Layer*, size_t> layer_depths;
  for (size_t i = steps_.size(); i-- > 0;) {
    size_t& of_layer = layer_depths[&*steps_[i].layer];
    of_layer = depths[i] = std::max(depths[i], of_layer);
    for (const Value& input : steps_[i].inputs) depths[input.step] = std::max(depths[input.step], depths[i] + 1);
  }
  std::vector<size_t> order(steps_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(input_specs_.size());
  std::stable_sort(first, order.end(), [&](size_t a, size_t b) {
    return depths[a] != depths[b] ? depths[a] > depths[b] : met_[&*steps_[a].layer] < met_[&*steps_[b].layer];
  });
  std::vector<size_t> place(order.size());
  std::vector<LayerStep> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(steps_[order[i]]));
  }
  for (LayerStep& step : sorted) {
    for (Value& input : step.inputs) input.step = place[input.step];
  }
  for (Value& output : outputs_) output.step = place[output.step];
  steps_ = std::move(sorted);
  visited_.clear();
  met_.clear();
}

void LayerGraph::Inherit(const LayerRef& layer, const std::shared_ptr<ModelState>& model) {
  WeightOrigin origin = layer.origin();
  if (model != nullptr) origin = {model, model->PathOf(*layer)};
  if (origin.model == nullptr) return;
  for (const Inherited& other : inherited_) {
    if (other.layer.ptr() != layer.ptr()) continue;
    if (other.origin.model == origin.model && other.origin.path == origin.path && other.origin.part == origin.part) {
      return;
    }
    throw InvalidArgumentError(StrCat("[keras/model] expected a layer with the weights of one model; got layer '",
                                      origin.path, "' of model '", origin.model->name(), "' also as '",
                                      other.origin.path, "' of model '", other.origin.model->name(), "'"));
  }
  inherited_.push_back({LayerRef(layer.ptr()), std::move(origin)});
}

LayerGraph::Value LayerGraph::Visit(const LayerTensor& tensor, const std::shared_ptr<ModelState>& outer) {
  const LayerCall* call = tensor.call().get();
  if (call->inputs.empty()) {  // one Input() may have been looked up several times
    for (size_t i = 0; i < input_specs_.size(); ++i) {
      if (steps_[i].layer.ptr() == call->layer.ptr()) return {i, tensor.index()};
    }
  }
  const auto found = std::find(visited_.begin(), visited_.end(), call);
  if (found != visited_.end()) return {static_cast<size_t>(found - visited_.begin()), tensor.index()};
  if (call->inputs.empty()) {
    throw InvalidArgumentError(
        StrCat("[keras/model] expected outputs that follow from the inputs given; got one that "
               "also needs an Input of shape ",
               tensor.shape(), "; add it to the inputs"));
  }
  met_.emplace(call->layer.ptr().get(), met_.size());
  // A value that was looked up stands for all that it follows from: the model where the look-up was made counts.
  const std::shared_ptr<ModelState>& model = outer != nullptr ? outer : tensor.model();
  Inherit(call->layer, model);
  LayerStep step = {LayerRef(call->layer.ptr()), {}};
  for (const LayerTensor& input : call->inputs) step.inputs.push_back(Visit(input, model));
  visited_.push_back(call);
  steps_.push_back(std::move(step));
  return {steps_.size() - 1, tensor.index()};
}

void LayerGraph::SetTrainable(bool trainable) const {
  Layer::SetTrainable(trainable);
  for (const LayerStep& step : steps_) step.layer.SetTrainable(trainable);
}

std::vector<Output> LayerGraph::Call(CallContext& ctx, const std::vector<Output>& inputs) const {
  if (inputs.size() != input_specs_.size()) {
    throw InvalidArgumentError(StrCat("[keras/model] expected ", input_specs_.size(), " inputs; got ", inputs.size()));
  }
  std::vector<std::vector<Output>> values;
  for (size_t i = 0; i < steps_.size(); ++i) {
    std::vector<Output> taken;
    if (i < inputs.size()) taken.push_back(inputs[i]);
    for (const Value& input : steps_[i].inputs) {
      taken.push_back(values[input.step].at(static_cast<size_t>(input.index)));
    }
    values.push_back(ctx.Call(*steps_[i].layer, taken));
  }
  std::vector<Output> results;
  results.reserve(outputs_.size());
  for (const Value& output : outputs_) results.push_back(values[output.step].at(static_cast<size_t>(output.index)));
  return results;
}

}  // namespace cohort::keras
