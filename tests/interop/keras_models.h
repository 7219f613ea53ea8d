// The models of interop_keras_models by name, and the functions that make them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/keras/keras.h"

namespace cohort::keras {

using ModelPtr = std::unique_ptr<Model>;
using ModelMakers = std::map<std::string, std::function<ModelPtr()>>;

inline ModelPtr Chain(std::vector<SequentialItem> items) { return std::make_unique<Sequential>(items); }

// Returns a model with `items` and three outputs.
inline ModelPtr Numbers(std::vector<SequentialItem> items) {
  items.push_back(Flatten());
  items.push_back(Dense(3));
  return Chain(std::move(items));
}

// Layers for sequences and images beyond the first convolutions and pools, normalizations of groups and vectors, noise,
// and dot products.
ModelMakers VisionModels();

// Models in which steps are masked.
ModelMakers MaskModels();

}  // namespace cohort::keras
