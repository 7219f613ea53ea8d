// Converts the layers of a model to a configuration (config.json of a .keras file) and back. Internal to keras/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/keras/files/config.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/layers/layer_graph.h"

namespace cohort::keras {

// Returns the name of each step's layer, as a model of these layers names them.
std::vector<std::string> StepNames(const LayerGraph& layers);

// Returns {"module", "class_name", "config", ...} of a Sequential or functional model that is called `name`. Throws
// UnimplementedError for a layer that has no configuration.
ConfigValue SerializedLayers(const LayerGraph& layers, const std::string& name, const std::string& dtype_policy);

// Returns true if the class is one of Keras's models that DeserializeLayers can make.
bool IsModelClass(const std::string& class_name);

// The layers of a model that was read from a file.
struct LayersFromConfig {
  std::string class_name;  // "Sequential" or "Functional"
  std::string name;
  bool trainable = true;
  std::string dtype_policy = "float32";
  std::vector<LayerRef> items;               // of a Sequential; the first item may be an InputLayer
  Shape build_shape = Shape::UnknownRank();  // of a Sequential without an InputLayer: [batch, ...], if known
  std::vector<LayerTensor> inputs, outputs;  // of a functional model
};
// Throws InvalidArgumentError, with the layer, for a class that is neither Keras's nor in `custom_layers`, for an
// unknown option, and for an inconsistent graph.
LayersFromConfig DeserializeLayers(const ConfigValue& value, const std::map<std::string, LayerFactory>& custom_layers);

}  // namespace cohort::keras
