// Layers of the program's own, by their classes, as files need them. Internal to keras/.
#pragma once

#include <string>
#include <vector>

#include "cohort/keras/files/model_files.h"

namespace cohort::keras {

// Returns the factory that RegisterLayer was given for the class; an empty one if there is none. Thread-safe.
LayerFactory RegisteredLayer(const std::string& class_name);
std::vector<std::string> RegisteredLayerNames();

// Gives a layer a name that has none.
class LayerNaming {
 public:
  // Requires: nobody else uses the layer yet.
  static void Give(const Layer& layer, const std::string& name) { layer.name_ = name; }
};

}  // namespace cohort::keras
