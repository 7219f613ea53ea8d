// ModelLayer: one of the layers of a model, found by its name or place, with the weights that it has there.
//
// A model is cut and continued like this; `head` is new, what lies before it keeps its weights:
//
//   keras::Model base = keras::LoadModel("base.keras");
//   base.SetTrainable(false);
//   const keras::LayerTensor features = base.GetLayer("features").output();
//   keras::Model model(base.inputs(), {keras::Dense(3, {.name = "head"})(features)});
//   model.Compile(...);
//
// Two models never share variables, because each has a graph of its own. The further model begins with copies of the
// weights: a functional model copies them when it is made, a Sequential when it is built. After that each model's
// weights are its own. A layer that comes from anywhere else than a built model, such as the LayerRef that Dense()
// returned, brings no weights: new ones are drawn.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

class LayerGraph;

// A handle, cheap to copy. It keeps its model alive. For one thread at a time, as its model.
class COHORT_EXPORT ModelLayer {
 public:
  const std::string& name() const { return name_; }  // in its model: "dense_1"
  const std::string& class_name() const;             // "Dense"

  bool trainable() const;
  // Freezes the layer or has it trained, as Keras does: the optimizer leaves a frozen layer's weights as they are, no
  // gradient of them is computed, their regularizers add nothing to the loss, and BatchNormalization computes as in
  // inference and keeps its statistics. A model inside the model passes it on to its layers. The next Compile makes
  // Fit obey; until then Fit goes on as before and warns. All models that have the layer obey.
  void SetTrainable(bool trainable) const;

  // The layer's weights, those of the layers inside of it among them, in the model's order.
  std::vector<Tensor> GetWeights() const;
  // Throws InvalidArgumentError for a wrong number of weights, and for one of another dtype or shape, which it names.
  void SetWeights(const std::vector<Tensor>& weights) const;
  std::vector<std::string> WeightNames() const;  // "dense_1/kernel"

  // The result of the layer's first call in the model, for a further model. Throws InvalidArgumentError for a layer
  // inside of a model that is a layer itself, and for a layer with several results (ask for outputs()).
  LayerTensor output() const;
  std::vector<LayerTensor> outputs() const;

  // The layers inside, if the layer is a model; else none.
  std::vector<ModelLayer> layers() const;
  // Throws NotFoundError, with the nearest names, if there is no layer of this name inside.
  ModelLayer GetLayer(const std::string& name) const;

  // The layer for a further model, which begins with copies of its weights.
  LayerRef ref() const;
  operator LayerRef() const { return ref(); }  // NOLINT(google-explicit-constructor)
  LayerTensor operator()(const LayerTensor& input) const { return ref()(input); }
  LayerTensor operator()(const std::vector<LayerTensor>& inputs) const { return ref()(inputs); }

 private:
  friend class Model;
  ModelLayer(std::shared_ptr<ModelState> model, std::shared_ptr<const Layer> layer, std::string path);
  // The layers of `layers`, which is at `path` of the model.
  static std::vector<ModelLayer> Of(const std::shared_ptr<ModelState>& model, const LayerGraph& layers,
                                    const std::string& path);
  // Throws NotFoundError for a name that none of `layers` has. `owner`: "model 'base'", for the error.
  static ModelLayer Find(const std::vector<ModelLayer>& layers, const std::string& name, const std::string& owner);
  // Which of the model's weights are the layer's.
  std::vector<size_t> Weights() const;

  std::shared_ptr<ModelState> model_;
  std::shared_ptr<const Layer> layer_;
  std::string path_;
  std::string name_;  // behind the last "/" of the path
};

}  // namespace cohort::keras
