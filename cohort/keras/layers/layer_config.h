// Layers from their form in files: what their FromConfig functions share, and the tables of their classes. Internal to
// keras/.
//
// A layer says its options in Config() and is made of them again by FromConfig, which stands beside it and in the table
// of its source. A new source of layers adds a function here and to the list in layer_config.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/layers/activations.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/initializers.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/layers/regularizers.h"

namespace cohort::keras {

// The name of a class in files, and what makes its layers.
using LayerMaker = std::pair<std::string, std::function<LayerRef(ConfigReader& reader)>>;
std::vector<LayerMaker> CoreLayerMakers();           // core_layers.cc
std::vector<LayerMaker> ConvolutionLayerMakers();    // convolution_layers.cc
std::vector<LayerMaker> PoolingLayerMakers();        // pooling_layers.cc
std::vector<LayerMaker> ShapeLayerMakers();          // shape_layers.cc
std::vector<LayerMaker> NormalizationLayerMakers();  // normalization_layers.cc

// Options that are objects or names. An option that is missing leaves `to` as it is.
void Read(ConfigReader& reader, const char* name, Initializer& to);
void Read(ConfigReader& reader, const char* name, Regularizer& to);
void Read(ConfigReader& reader, const char* name, ActivationFunction& to);
void Read(ConfigReader& reader, const char* name, RowsColumns& to);
// One number for both, or a list of two. Throws InvalidArgumentError.
RowsColumns RowsColumnsOf(const ConfigValue& value);
// 0 if the file has none, or a generator's state: the numbers that it gave are in the weights.
int64_t ReadSeed(ConfigReader& reader);

// Returns the layer's name, and passes over what every layer has beside it. The dtype is the model's; see LoadModel.
std::string ReadName(ConfigReader& reader);
// The same for a layer with weights: name and trainable.
template <typename Options>
void ReadWeighted(ConfigReader& reader, Options& options) {
  options.name = ReadName(reader);
  reader.Read("trainable", options.trainable);
  for (const char* part : {"kernel", "bias", "depthwise", "pointwise", "embeddings", "beta", "gamma"}) {
    reader.OnlyDefault(StrCat(part, "_constraint").c_str(), nullptr);
  }
  reader.OnlyDefault("quantization_config", nullptr);
  reader.OnlyDefault("lora_rank", nullptr);
  reader.Ignore("lora_alpha");
}

}  // namespace cohort::keras
