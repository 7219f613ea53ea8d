// MaskOperations, MaskFlow, NamesBesideMasks: the operations among the layers of a functional model in a file. Internal
// to keras/.
//
// In Keras's files a functional model lists not only layers but also the operations that compute its masks, and a call
// of a layer that uses a mask has the result of such an operation as its argument `mask`. Here layers find the masks of
// their inputs themselves. So a reader leaves the operations out, after it has checked that they compute no other mask.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/keras/files/config.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/layers/layer_instance.h"

namespace cohort::keras {

// Immutable. LayersReader makes one for each functional model that it reads. The file must live as long.
class MaskOperations {
 public:
  // Returns whether an entry of the list of layers is an operation and not a layer.
  static bool IsOperation(const ConfigValue& layer);
  // Returns the name by which calls refer to an entry of the list of layers.
  static const std::string& NameOf(const ConfigValue& layer);

  explicit MaskOperations(const ConfigValue::List& layers);

  bool Has(const std::string& name) const { return operations_.count(name) > 0; }
  // Returns the places of the values from which `mask`, the argument of a call of the layer `layer`, follows: layers
  // Embedding and Masking find masked steps in them. Returns no place if the mask is null. Throws InvalidArgumentError
  // for a mask that follows from others.
  std::vector<const ConfigValue*> Sources(const std::string& layer, const ConfigValue& mask) const;

 private:
  // Adds the operations whose results `argument` has to *names.
  void AddOperations(const std::string& layer, const ConfigValue& argument, std::set<std::string>* names) const;
  void AddSources(const std::string& layer, const ConfigValue& operation, std::vector<const ConfigValue*>* to) const;

  std::map<std::string, const ConfigValue*> operations_;  // by name
  // A value, as files refer to it, and the number by which a layer finds its masked steps.
  std::set<std::pair<std::string, double>> sources_;
};

// The masks that the values of a model carry. It adds the layers to a graph of its own. LayersReader makes one for each
// functional model in which a call has a mask. Used by one thread.
class MaskFlow {
 public:
  MaskFlow() : weights_(graph_), layers_(weights_, LayerInstance::Options{}) {}
  // Adds a call of a layer whose inputs were added before.
  void Add(const Layer& layer, const std::vector<LayerTensor>& inputs, const std::vector<LayerTensor>& results);
  // Returns whether the mask of `value` follows from the values `sources`, from all of them and from no other. The mask
  // of a value that carries none follows from no value.
  bool FollowsFrom(const LayerTensor& value, const std::vector<LayerTensor>& sources) const;

 private:
  using Key = std::pair<const LayerCall*, int>;
  static Key KeyOf(const LayerTensor& tensor) { return {tensor.call().get(), tensor.index()}; }

  Graph graph_;
  WeightStore weights_;
  LayerInstance layers_;
  std::map<Key, Output> values_;
};

// Returns the names of steps() in a file, made from their names in the model. When Keras reads a model with masks, it
// gives the operations that join masks the names concatenate, concatenate_1, ... Layers must not have these, too. So
// layers Concatenate without a name of their own get longer ones.
std::vector<std::string> NamesBesideMasks(const LayerGraph& layers, std::vector<std::string> names);

}  // namespace cohort::keras
