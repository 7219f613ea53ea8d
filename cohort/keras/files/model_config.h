// The layers of a model as configuration (config.json of a .keras file), and the reverse. Internal to keras/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/keras/files/config.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/layers/layer_graph.h"

namespace cohort::keras {

// The name of each step's layer, as a model of these layers names them.
std::vector<std::string> StepNames(const LayerGraph& layers);

// {"module", "class_name", "config", ...} of a Sequential or Functional model. Throws UnimplementedError for layers
// that do not say how they are made.
ConfigValue SerializedLayers(const LayerGraph& layers, const std::string& dtype_policy);

struct LayersFromConfig {
  std::string class_name;  // "Sequential" or "Functional"
  std::string name;
  bool trainable = true;
  std::string dtype_policy = "float32";
  std::vector<LayerRef> items;               // of a Sequential: possibly an InputLayer first
  Shape build_shape = Shape::UnknownRank();  // of a Sequential without one: [batch, ...], where it is known
  std::vector<LayerTensor> inputs, outputs;  // of a Functional
};
// Throws InvalidArgumentError, with the layer, for classes that are neither Keras's nor among `custom_layers`, options
// that are not known, and graphs that do not hang together.
LayersFromConfig DeserializeLayers(const ConfigValue& value, const std::map<std::string, LayerFactory>& custom_layers);

}  // namespace cohort::keras
