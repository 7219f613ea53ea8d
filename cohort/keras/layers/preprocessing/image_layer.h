// ImageLayer: what the layers of image_preprocessing.h share. Internal to keras/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/keras/layers/layer.h"
#include "cohort/keras/layers/layer_config.h"

namespace cohort::keras {

// A layer for images of known rows and columns.
class ImageLayer : public Layer {
 public:
  // Throws InvalidArgumentError for other inputs.
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override;

 protected:
  ImageLayer(const char* class_name, const std::string& name) : Layer(class_name, name) {}
  // Throws InvalidArgumentError, which names the layer, what was expected, and what it got.
  [[noreturn]] void Refuse(const std::string& expected, const std::string& got) const;
  // Throws InvalidArgumentError for sizes below 1.
  void CheckSize(int64_t height, int64_t width) const;
};

// Reads what all these layers have in files, and returns the name.
std::string ReadImageLayer(ConfigReader& reader);
// The form of a seed in files.
ConfigValue SeedInFile(int64_t seed);

}  // namespace cohort::keras
