// Makes layers from their form in files: the functions that all FromConfig functions share, and the tables of classes.
// Internal to keras/.
//
// A layer returns its options in Config(). FromConfig, a static function of the same class, makes the layer from these
// options. Each source lists the FromConfig functions of its classes in a table. A new source of layers adds a function
// below and a line to the list in layer_config.cc.
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

// The name of a class in files, and the function that makes its layers.
using LayerMaker = std::pair<std::string, std::function<LayerRef(ConfigReader& reader)>>;
std::vector<LayerMaker> CoreLayerMakers();               // core_layers.cc
std::vector<LayerMaker> ConvolutionLayerMakers();        // convolution_layers.cc
std::vector<LayerMaker> TransposedLayerMakers();         // transposed_convolutions.cc
std::vector<LayerMaker> PoolingLayerMakers();            // pooling_layers.cc
std::vector<LayerMaker> ShapeLayerMakers();              // shape_layers.cc
std::vector<LayerMaker> ResizingLayerMakers();           // resizing_layers.cc
std::vector<LayerMaker> NoiseLayerMakers();              // noise_layers.cc
std::vector<LayerMaker> MergingLayerMakers();            // merging_layers.cc
std::vector<LayerMaker> LookupLayerMakers();             // preprocessing/lookup_layers.cc
std::vector<LayerMaker> TextLayerMakers();               // preprocessing/text_vectorization.cc
std::vector<LayerMaker> PreprocessingLayerMakers();      // preprocessing/preprocessing_layers.cc
std::vector<LayerMaker> ImageResizingLayerMakers();      // preprocessing/image_resizing.cc
std::vector<LayerMaker> ImageAugmentationLayerMakers();  // preprocessing/image_augmentation.cc
std::vector<LayerMaker> RecommenderLayerMakers();        // recommender_layers.cc
std::vector<LayerMaker> ActivationLayerMakers();         // activation_layers.cc
std::vector<LayerMaker> NormalizationLayerMakers();      // normalization_layers.cc
std::vector<LayerMaker> RecurrentLayerMakers();          // recurrent/recurrent_layers.cc
std::vector<LayerMaker> AttentionLayerMakers();          // recurrent/attention_layers.cc
// The same for layers that contain layers which the program gives. `inner` makes these.
using InnerLayerMaker = std::function<LayerRef(const ConfigValue& layer)>;
using WrapperMaker =
    std::pair<std::string, std::function<LayerRef(ConfigReader& reader, const InnerLayerMaker& inner)>>;
std::vector<WrapperMaker> WrapperLayerMakers();  // recurrent/wrapper_layers.cc

// Returns the layer as files have it. Its module is that of Keras, or of Keras Recommenders for the classes of
// RecommenderLayerMakers.
ConfigValue SerializedLayer(const std::string& class_name, ConfigValue::Object config);
// Returns whether layers of this class have a dtype of their own in files, which Config() returns, and not that of the
// model's policy.
bool SaysOwnDtype(const std::string& class_name);
// Returns whether files have the option "trainable" for layers of this class.
bool FilesSayTrainable(const std::string& class_name);

// Each function reads one option; the type of `to` decides what the option may be. If the option is missing, `to` stays
// unchanged.
void Read(ConfigReader& reader, const char* name, Initializer& to);
void Read(ConfigReader& reader, const char* name, Regularizer& to);
void Read(ConfigReader& reader, const char* name, ActivationFunction& to);
void Read(ConfigReader& reader, const char* name, RowsColumns& to);
void Read(ConfigReader& reader, const char* name, int64_t& to);  // a number of steps
// Returns one number, which is used for rows and columns, or a list of two numbers. Throws InvalidArgumentError for
// another value.
RowsColumns RowsColumnsOf(const ConfigValue& value);
// Returns one number, which may be in a list. Throws InvalidArgumentError for another value.
int64_t StepsOf(const ConfigValue& value);
// Returns the seed, or 0 if the file has none. Also returns 0 if the file has the state of a random generator instead
// of a seed.
int64_t ReadSeed(ConfigReader& reader);

// Returns the layer's name. Ignores the options dtype (a loaded layer has the dtype of the model) and trainable. Throws
// InvalidArgumentError if the layer has an activity_regularizer.
std::string ReadName(ConfigReader& reader);
// Reads name and trainable of a layer with weights. Throws InvalidArgumentError if the layer has a constraint,
// quantization or LoRA.
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
