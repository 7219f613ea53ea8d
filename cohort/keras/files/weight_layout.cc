#include "cohort/keras/files/weight_layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/model_config.h"
#include "cohort/keras/layers/compound_layer.h"
#include "cohort/keras/layers/preprocessing/lookup_vectors.h"
#include "cohort/keras/string_names.h"

namespace cohort::keras {
namespace {

std::string Below(const std::string& path, const std::string& name) {
  return path.empty() || name.empty() ? path + name : path + "/" + name;
}

class Walk {
 public:
  explicit Walk(const std::vector<ModelWeight>& weights) : weights_(weights) {}

  // `layer`: path of the graph in the model; `path`: in the file.
  void Graph(const LayerGraph& layers, const std::string& layer, const std::string& path) {
    const std::vector<std::string> names = StepNames(layers);
    const bool chain = layers.class_name() == "Sequential";
    std::set<const Layer*> seen;
    LayerPlaces places;
    for (size_t i = 0; i < layers.steps().size(); ++i) {
      const Layer& step = *layers.steps()[i].layer;
      // A Sequential does not count its input among its layers.
      if (!seen.insert(&step).second || (chain && i == 0)) continue;
      Any(step, Below(layer, names[i]), Below(path, places.Next(step.class_name())));
    }
  }

  std::vector<WeightPlace> places() && { return std::move(places_); }

 private:
  void Any(const Layer& one, const std::string& layer, const std::string& path) {
    places_.push_back({path, layer, WeightsOf(layer)});
    if (const auto* graph = dynamic_cast<const LayerGraph*>(&one)) {
      Graph(*graph, layer, path);
      return;
    }
    if (const auto* compound = dynamic_cast<const CompoundLayer*>(&one)) {
      for (const CompoundLayer::Part& part : compound->Parts()) {
        Any(*part.layer, layer + "/" + part.name, path + "/" + part.group);
      }
      return;
    }
    if (const auto* lookup = dynamic_cast<const VocabularyLayer*>(&one)) {
      places_.pop_back();
      for (const std::string& owner : lookup->OwnersOfWeights()) {
        places_.push_back({Below(path, owner), layer, {}, lookup->WeightsInFile()});
      }
      return;
    }
    std::set<std::string> inner;
    for (const ModelWeight& weight : weights_) {
      if (weight.layer.rfind(layer + "/", 0) != 0 || !inner.insert(weight.layer).second) continue;
      places_.push_back({path + weight.layer.substr(layer.size()), weight.layer, WeightsOf(weight.layer)});
    }
  }

  // Trained ones first.
  std::vector<size_t> WeightsOf(const std::string& layer) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i].layer == layer) found.push_back(i);
    }
    std::stable_partition(found.begin(), found.end(), [&](size_t i) { return weights_[i].spec.trainable; });
    return found;
  }

  const std::vector<ModelWeight>& weights_;
  std::vector<WeightPlace> places_;
};

std::string ShapesOf(const std::vector<Tensor>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const Tensor& value : values) texts.push_back(StrCat(value.dtype(), value.shape()));
  return texts.empty() ? "none" : StrJoin(texts, ", ");
}

// Values of the file that no weight of the model has: states of random generators.
bool IsForeignState(const std::string& path) {
  return path.rfind("layers/", 0) != 0 || path.find("seed_generator") != std::string::npos;
}

Tensor Fitting(const Tensor& value, const WeightSpec& spec) {
  if (!(value.shape() == spec.shape)) return {};
  if (value.dtype() == spec.dtype) return value;
  if (spec.dtype != DType::kFloat32 || value.dtype() != DType::kBfloat16) return {};
  Tensor wide(DType::kFloat32, value.shape());
  const auto narrow = value.values<bfloat16>();
  std::transform(narrow.begin(), narrow.end(), wide.data<float>(), [](bfloat16 x) { return static_cast<float>(x); });
  return wide;
}

// A layer keeps the idf weights that it was made with, so other ones in a file must not be passed over.
void CheckIdfWeights(const Tensor& of_file, const WeightPlace& place, const std::string& where) {
  if (!of_file.defined()) return;
  const Tensor& own = place.idf_weights;
  if (own.defined() && own.dtype() == of_file.dtype() && own.shape() == of_file.shape() &&
      std::equal(static_cast<const char*>(own.raw_data()), static_cast<const char*>(own.raw_data()) + own.bytes(),
                 static_cast<const char*>(of_file.raw_data()))) {
    return;
  }
  throw InvalidArgumentError(StrCat("[keras/load_weights] expected the idf_weights of layer '", place.layer,
                                    "' of the model in '", place.path, "/vars'; ", where, " has ",
                                    own.defined() ? "other ones" : "some, and the layer has none",
                                    ": make the layer with them, or load the model with LoadModel"));
}

}  // namespace

std::vector<WeightPlace> LayOutWeights(const LayerGraph& layers, const std::vector<ModelWeight>& weights) {
  Walk walk(weights);
  walk.Graph(layers, "", "");
  return std::move(walk).places();
}

std::vector<Tensor> TakeWeights(const std::vector<WeightGroup>& groups, const std::vector<WeightPlace>& places,
                                const std::vector<ModelWeight>& weights, const std::string& where) {
  std::map<std::string, const WeightGroup*> by_path;
  for (const WeightGroup& group : groups) by_path[group.path] = &group;
  std::vector<Tensor> taken(weights.size());
  for (const WeightPlace& place : places) {
    const auto found = by_path.find(place.path);
    const std::vector<Tensor> none;
    const std::vector<Tensor>& values = found == by_path.end() ? none : found->second->values;
    if (found != by_path.end()) {
      CheckIdfWeights(found->second->idf_weights, place, where);
      by_path.erase(found);
    }
    std::vector<std::string> wanted;
    for (const size_t i : place.weights) {
      wanted.push_back(StrCat(weights[i].spec.name, " ", weights[i].spec.dtype, weights[i].spec.shape));
    }
    bool fits = values.size() == wanted.size();
    for (size_t k = 0; fits && k < values.size(); ++k) {
      taken[place.weights[k]] = Fitting(values[k], weights[place.weights[k]].spec);
      fits = taken[place.weights[k]].defined();
    }
    if (fits) continue;
    throw InvalidArgumentError(StrCat("[keras/load_weights] expected ",
                                      wanted.empty() ? "no weights" : StrJoin(wanted, ", "), " in '", place.path,
                                      "/vars' (layer '", place.layer, "' of the model); got ", ShapesOf(values), " in ",
                                      where, "; is the file of another model?"));
  }
  for (const auto& [path, group] : by_path) {
    if (group->values.empty() || IsForeignState(path)) continue;
    throw InvalidArgumentError(StrCat("[keras/load_weights] expected weights that the model has; ", where, " has ",
                                      ShapesOf(group->values), " in '", path, "/vars'",
                                      " beside them; is the file of another model?"));
  }
  return taken;
}

}  // namespace cohort::keras
