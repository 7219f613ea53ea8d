// Converts between Keras's two forms of a name: the class, "GlorotUniform", and the string, "glorot_uniform".
#pragma once

#include <map>
#include <string>

namespace cohort::keras {

// Converts names as Keras names layers: "SeparableConv2D" to "separable_conv2d", "MaxPooling2D" to "max_pooling2d",
// "L2" to "l2".
std::string SnakeCase(const std::string& class_name);

// Names the places of a model's layers in files as Keras does: "layers/dense", "layers/dense_1", ... It is asked once
// for each layer, in the order of the layers. For one thread.
class LayerPlaces {
 public:
  std::string Next(const std::string& class_name);

 private:
  std::map<std::string, int> numbers_;  // how many layers of each class there were
};

}  // namespace cohort::keras
