// Models and their weights in files: Keras 3's, and ONNX for export.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/files/config.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/model.h"

namespace cohort::keras {

// Writes the whole model as a Keras 3 file, `path` ends in ".keras": layers, weights, what Compile was given and the
// optimizer's state. Keras and LoadModel make the same model of it. Needs input shapes to be known. Throws
// UnimplementedError for layers that a file cannot describe, and what core/file.h throws; an optimizer, loss or metric
// of the program's own is left out with a warning.
COHORT_EXPORT void SaveModel(const Model& model, const std::string& path);

// Makes a layer of the program's own from its configuration: "name", "trainable", and what its Config() gave. The layer
// that it returns has this name and is trainable or not as the configuration says; else LoadModel throws
// InvalidArgumentError.
using LayerFactory = std::function<LayerRef(const ConfigValue& config)>;

struct COHORT_EXPORT LoadOptions {
  bool compile = true;  // with the optimizer (and its state), losses and metrics of the file, where it has them
  std::map<std::string, LayerFactory> custom_layers;  // by class name; before Keras's own
  int64_t seed = 0;                                   // as ModelOptions has them
  SessionConfig session;
  distribute::StrategyPtr strategy;
};

// Returns a Sequential or a functional Model with the file's weights. Throws what ReadModelArchive throws (archive.h),
// and errors that name file and member: InvalidArgumentError for layers or options that are not known and for weights
// that do not fit, DataLossError for damaged ones.
COHORT_EXPORT Model LoadModel(const std::string& path, const LoadOptions& options = {});

// Writes weights and the optimizer's state alone, `path` ends in ".weights.h5".
COHORT_EXPORT void SaveWeights(const Model& model, const std::string& path);
// Reads weights and the optimizer's state from either kind of file. Layers are found by class and order, as Keras finds
// them. Throws InvalidArgumentError that names file, group and layer for weights that do not fit - nothing has changed
// then -, DataLossError for damaged files. An optimizer's state that does not fit is passed over with a warning.
COHORT_EXPORT void LoadWeights(Model& model, const std::string& path);

// Writes the inference graph as an ONNX file (opset 17, float32), for onnxruntime and the like. Inputs and outputs are
// called as their layers; images stay [batch, rows, columns, channels]. Needs input shapes to be known. Throws
// UnimplementedError that names an op - of a layer of the program's own - that has no form in ONNX.
COHORT_EXPORT void ExportOnnx(const Model& model, const std::string& path);

}  // namespace cohort::keras
