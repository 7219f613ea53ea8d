// Finds the places of a model's weights in a .weights.h5 file, which are those of Keras 3. Internal to keras/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cohort/keras/files/weights_file.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/layers/layer_instance.h"

namespace cohort::keras {

// The name of the group with the optimizer's variables.
inline constexpr char kOptimizerGroup[] = "optimizer";

// The group of one layer in a file, and the weights in it.
struct WeightPlace {
  std::string path;             // path of the group: "layers/dense_1", "layers/functional/layers/conv2d"
  std::string layer;            // path of the layer in the model: "dense_1"
  std::vector<size_t> weights;  // indices of the model's weights, in the order of the datasets
  // What the file has beside them, as a copy: a layer with a vocabulary has it in config.json, too. Undefined if the
  // layer has none.
  Tensor idf_weights = {};
};

// Returns one entry for each layer, also for layers without weights. A path consists of class names, which are numbered
// in the order of the layers; names of layers are not used. If a layer of the program's own contains layers, their
// weights are in groups below its group, under the names of these layers.
std::vector<WeightPlace> LayOutWeights(const LayerGraph& layers, const std::vector<ModelWeight>& weights);

// Returns the values for `weights` from a file's groups. `where` names the file. Throws InvalidArgumentError that names
// group and layer if a value is missing or has another shape, or if the file has weights that the model does not have.
std::vector<Tensor> TakeWeights(const std::vector<WeightGroup>& groups, const std::vector<WeightPlace>& places,
                                const std::vector<ModelWeight>& weights, const std::string& where);

}  // namespace cohort::keras
