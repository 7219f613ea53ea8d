// ModelLayer: a layer of a model, found by its name or place, with the weights that it has in this model.
//
// A program can cut a model and continue it with other layers. In this example, the layer `head` is new, and the layers
// before it keep their weights:
//
//   keras::Model base = keras::LoadModel("base.keras");
//   base.SetTrainable(false);
//   const keras::LayerTensor features = base.GetLayer("features").output();
//   keras::Model model(base.inputs(), {keras::Dense(3, {.name = "head"})(features)});
//   model.Compile(...);
//
// Two models never share variables, because each has a graph of its own. The new model begins with copies of the
// weights: a functional model copies them when it is made, a Sequential when it is built. After that, a change of the
// weights of one model does not change the other model. If a layer does not come from a built model, such as the
// LayerRef that Dense() returned, its weights get new initial values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

class LayerGraph;

// A handle of a layer, cheap to copy. It keeps its model alive. Only one thread at a time may use the model and its
// ModelLayers.
class COHORT_EXPORT ModelLayer {
 public:
  const std::string& name() const { return name_; }  // its name in the model: "dense_1"
  const std::string& class_name() const;             // "Dense"

  bool trainable() const;
  // Freezes the layer (false) or lets it be trained (true), as Keras does, in all models that have the layer. The
  // optimizer does not change the weights of a frozen layer, no gradients of them are computed, and their regularizers
  // add nothing to the loss. A frozen BatchNormalization computes as in inference and keeps its statistics. If the
  // layer is a model, does the same for all layers in it. As in Keras, a model that was fitted since its last Compile
  // obeys only after its next Compile. Until then Fit and Evaluate work as before, and Fit logs a warning.
  void SetTrainable(bool trainable) const;

  // Returns the weights of the layer and of all layers inside of it, in the model's order.
  std::vector<Tensor> GetWeights() const;
  // Throws InvalidArgumentError for a wrong number of weights, and for a weight of another dtype or shape; the error
  // names the weight.
  void SetWeights(const std::vector<Tensor>& weights) const;
  std::vector<std::string> WeightNames() const;  // "dense_1/kernel"

  // Returns the result of the layer's first call in the model; a new model can be made from it. Throws
  // InvalidArgumentError for a layer inside of another layer, and for a layer with several results (use outputs()).
  LayerTensor output() const;
  std::vector<LayerTensor> outputs() const;

  // Returns the layers of a layer that is a model. Returns an empty list for other layers.
  std::vector<ModelLayer> layers() const;
  // Returns one of layers() by name. Throws NotFoundError, with the nearest names, if there is none.
  ModelLayer GetLayer(const std::string& name) const;

  // Returns the layer for use in a new model. The new model begins with copies of the layer's weights.
  LayerRef ref() const;
  operator LayerRef() const { return ref(); }  // NOLINT(google-explicit-constructor)
  LayerTensor operator()(const LayerTensor& input) const { return ref()(input); }
  LayerTensor operator()(const std::vector<LayerTensor>& inputs) const { return ref()(inputs); }

 private:
  friend class Model;
  ModelLayer(std::shared_ptr<ModelState> model, std::shared_ptr<const Layer> layer, std::string path);
  // Returns handles of the layers in `layers`. `path` is the path of `layers` in `model`: "" for the whole model, or
  // the path of a layer that is a model.
  static std::vector<ModelLayer> Of(const std::shared_ptr<ModelState>& model, const LayerGraph& layers,
                                    const std::string& path);
  // Returns the layer called `name`. Throws NotFoundError if none of `layers` has this name. `owner`: "model 'base'",
  // for the error.
  static ModelLayer Find(const std::vector<ModelLayer>& layers, const std::string& name, const std::string& owner);
  // Returns the indices of the layer's weights among the weights of the model.
  std::vector<size_t> Weights() const;

  std::shared_ptr<ModelState> model_;
  std::shared_ptr<const Layer> layer_;
  std::string path_;
  std::string name_;  // the part of path_ after the last "/"
};

}  // namespace cohort::keras
