// Models from files: those that Model::Save wrote, and Keras 3's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "cohort/keras/files/config.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/model.h"

namespace cohort::keras {

// Makes a layer of the program's own from its configuration: "name", "trainable", and what its Config() gave. The layer
// that it returns has this name and is trainable or not as the configuration says; else LoadModel throws
// InvalidArgumentError.
using LayerFactory = std::function<LayerRef(const ConfigValue& config)>;

struct LoadOptions {
  bool compile = true;  // with the optimizer (and its state), losses and metrics of the file, where it has them
  std::map<std::string, LayerFactory> custom_layers;  // by class name; before Keras's own
  int64_t seed = 0;                                   // as ModelOptions has them
  SessionConfig session;
  distribute::StrategyPtr strategy;
};

// A Sequential, or a functional Model, with the file's weights. A class of the program's own that derives from Model is
// not found again: make one and call LoadWeights. Throws what ReadModelArchive throws (archive.h), and errors that name
// file and member: InvalidArgumentError for layers or options that are not known and for weights that do not fit,
// DataLossError for damaged ones.
std::unique_ptr<Model> LoadModel(const std::string& path, const LoadOptions& options = {});

}  // namespace cohort::keras
