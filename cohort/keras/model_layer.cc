#include "cohort/keras/model_layer.h"

#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/nearest_names.h"
#include "cohort/keras/files/model_config.h"
#include "cohort/keras/training/model_state.h"

namespace cohort::keras {

ModelLayer::ModelLayer(std::shared_ptr<ModelState> model, std::shared_ptr<const Layer> layer, std::string path)
    : model_(std::move(model)), layer_(std::move(layer)), path_(std::move(path)) {
  name_ = path_.substr(path_.rfind('/') + 1);
}

std::vector<ModelLayer> ModelLayer::Of(const std::shared_ptr<ModelState>& model, const LayerGraph& layers,
                                       const std::string& path) {
  const std::vector<std::string> names = StepNames(layers);
  const bool chain = layers.class_name() == "Sequential";
  std::set<const Layer*> seen;
  std::vector<ModelLayer> found;
  for (size_t i = 0; i < names.size(); ++i) {
    const LayerRef& layer = layers.steps()[i].layer;
    // A Sequential does not count its input among its layers.
    if (!seen.insert(&*layer).second || (chain && i == 0)) continue;
    found.push_back(ModelLayer(model, layer.ptr(), path.empty() ? names[i] : path + "/" + names[i]));
  }
  return found;
}

ModelLayer ModelLayer::Find(const std::vector<ModelLayer>& layers, const std::string& name, const std::string& owner) {
  std::vector<std::string> names;
  for (const ModelLayer& layer : layers) {
    if (layer.name() == name) return layer;
    names.push_back(layer.name());
  }
  throw NotFoundError(StrCat("[keras/model] expected the name of a layer of ", owner, "; got '", name, "'",
                             DidYouMean(name, names), "; it has ", names.empty() ? "none" : StrJoin(names, ", ")));
}

const std::string& ModelLayer::class_name() const { return layer_->class_name(); }
bool ModelLayer::trainable() const { return layer_->trainable(); }
void ModelLayer::SetTrainable(bool trainable) const { layer_->SetTrainable(trainable); }

std::vector<size_t> ModelLayer::Weights() const { return WeightsBelow(model_->engine().weights(), path_); }

std::vector<Tensor> ModelLayer::GetWeights() const {
  const std::vector<Tensor> all = model_->engine().GetWeights();
  std::vector<Tensor> own;
  for (const size_t i : Weights()) own.push_back(all[i]);
  return own;
}

void ModelLayer::SetWeights(const std::vector<Tensor>& weights) const {
  const std::vector<size_t> places = Weights();
  if (weights.size() != places.size()) {
    throw InvalidArgumentError(StrCat("[keras/model] expected ", places.size(), " weights (",
                                      places.empty() ? "none" : StrJoin(WeightNames(), ", "), ") for layer '", path_,
                                      "' of model '", model_->name(), "'; got ", weights.size()));
  }
  std::vector<Tensor> all = model_->engine().GetWeights();
  for (size_t i = 0; i < places.size(); ++i) all[places[i]] = weights[i];
  model_->engine().SetWeights(all);
}

std::vector<std::string> ModelLayer::WeightNames() const {
  std::vector<std::string> names;
  for (const size_t i : Weights()) names.push_back(model_->engine().weights()[i].path);
  return names;
}

std::vector<LayerTensor> ModelLayer::outputs() const {
  const LayerGraph& layers = model_->engine().layers();
  for (size_t i = 0; i < layers.steps().size(); ++i) {
    if (path_.find('/') != std::string::npos || layers.steps()[i].layer.ptr() != layer_) continue;
    return model_->ValuesOf(model_, i);
  }
  throw InvalidArgumentError(StrCat("[keras/model] expected one of the own layers of model '", model_->name(),
                                    "' to take results of; got '", path_,
                                    "', which is inside of another layer: apply that layer, or this one, instead"));
}

LayerTensor ModelLayer::output() const {
  const std::vector<LayerTensor> all = outputs();
  if (all.size() == 1) return all[0];
  throw InvalidArgumentError(StrCat("[keras/model] expected a layer with one result; layer '", path_, "' of model '",
                                    model_->name(), "' has ", all.size(), ": ask for outputs()"));
}

std::vector<ModelLayer> ModelLayer::layers() const {
  const auto* inner = dynamic_cast<const LayerGraph*>(layer_.get());
  return inner == nullptr ? std::vector<ModelLayer>() : Of(model_, *inner, path_);
}

ModelLayer ModelLayer::GetLayer(const std::string& name) const {
  return Find(layers(), name, StrCat("layer '", path_, "' of model '", model_->name(), "'"));
}

LayerRef ModelLayer::ref() const { return LayerRef(layer_, {model_, path_}); }

}  // namespace cohort::keras
