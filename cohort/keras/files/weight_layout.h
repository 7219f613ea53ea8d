// Where a model's weights stand in a .weights.h5 file, as Keras 3 places them. Internal to keras/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cohort/keras/files/weights_file.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/layers/layer_instance.h"

namespace cohort::keras {

// The group of the optimizer's variables.
inline constexpr char kOptimizerGroup[] = "optimizer";

struct WeightPlace {
  std::string path;             // of the group: "layers/dense_1", "layers/functional/layers/conv2d"
  std::string layer;            // path of the layer in the model: "dense_1"
  std::vector<size_t> weights;  // which of the model's weights, in the order of the datasets
};

// One entry a layer, also for those without weights. Paths are made of the classes, numbered in the order of the
// layers; names of layers do not count. Weights of layers inside a layer of the program's own stand below it, under
// the inner layers' names.
std::vector<WeightPlace> LayOutWeights(const LayerGraph& layers, const std::vector<ModelWeight>& weights);

// The values for `weights` from a file's groups; `where` names the file. Throws InvalidArgumentError that names group
// and layer for one that is missing or has other shapes, and for weights of the file that the model has no place for.
std::vector<Tensor> TakeWeights(const std::vector<WeightGroup>& groups, const std::vector<WeightPlace>& places,
                                const std::vector<ModelWeight>& weights, const std::string& where);

}  // namespace cohort::keras
