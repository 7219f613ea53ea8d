// Writes and reads models and their weights, in the formats of Keras 3. Exports models as ONNX and as SavedModels.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/files/config.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/model.h"

namespace cohort::keras {

// Writes the whole model as a Keras 3 file: layers, weights, the arguments of Compile and the optimizer's state. `path`
// must end in ".keras". Both Keras and LoadModel can make the model from the file. If the optimizer, a loss or a metric
// is of the program's own, the file has none of the arguments of Compile, and a warning is logged. Throws
// InvalidArgumentError if `path` has another ending, FailedPreconditionError if input shapes are not known,
// UnimplementedError for a layer that a file cannot describe (its class does not override Config(), or it has a
// function of the program's own), and what core/file.h throws.
COHORT_EXPORT void SaveModel(const Model& model, const std::string& path);

// Makes a layer of the program's own from its configuration: the values that its Config() returned. LoadModel then sets
// the layer's name from the file if the factory gave none, and freezes the layer if it was frozen. If the factory has
// given another name than the file's, LoadModel throws InvalidArgumentError.
using LayerFactory = std::function<LayerRef(const ConfigValue& config)>;

// From now on LoadModel and Predictor::Load make layers of this class with `factory`, for the whole process.
// Thread-safe. Throws AlreadyExistsError if the class is registered already or is one of Keras's.
COHORT_EXPORT void RegisterLayer(const std::string& class_name, LayerFactory factory);

// The options of LoadModel.
struct COHORT_EXPORT LoadOptions {
  bool compile = true;  // compile with the optimizer (and its state), losses and metrics of the file
  // Factories by class name. LoadModel looks here first, and then among the factories of RegisterLayer and Keras's own
  // classes.
  std::map<std::string, LayerFactory> custom_layers;
  int64_t seed = 0;  // seed, session and strategy are as in ModelOptions
  SessionConfig session;
  distribute::StrategyPtr strategy;
};

// Returns a Sequential or a functional Model with the file's weights. Throws what ReadModelArchive throws (archive.h).
// Throws InvalidArgumentError for an unknown layer or option and for weights that do not fit, and DataLossError for
// damaged weights. These errors name the file and the member of the zip archive that is wrong.
COHORT_EXPORT Model LoadModel(const std::string& path, const LoadOptions& options = {});

// Writes only the weights and, if the model is compiled, the optimizer's state. Throws InvalidArgumentError if `path`
// does not end in ".weights.h5", FailedPreconditionError if input shapes are not known, and what core/file.h throws.
COHORT_EXPORT void SaveWeights(const Model& model, const std::string& path);
// Reads weights and, if the model is compiled, the optimizer's state, from a ".keras" or a ".weights.h5" file. As in
// Keras, the weights of a layer are found by the layer's class and by its position among the layers of this class.
// Throws InvalidArgumentError if weights do not fit, or if the file has other idf weights than a layer with a
// vocabulary was made with; then nothing has changed. The error names the file, the HDF5 group in it, and the layer.
// Throws DataLossError for a damaged file, FailedPreconditionError if input shapes are not known. If the optimizer's
// state does not fit, logs a warning and keeps the current state.
COHORT_EXPORT void LoadWeights(Model& model, const std::string& path);

// Writes the inference graph as an ONNX file (opset 17, float32), for example for onnxruntime. Inputs and outputs have
// the names of their layers. Images stay [batch, rows, columns, channels]. Throws FailedPreconditionError if input
// shapes are not known. Throws UnimplementedError that names the op if an op of the model has no form in ONNX.
COHORT_EXPORT void ExportOnnx(const Model& model, const std::string& path);

// Writes the inference graph and the weights as a SavedModel into the new folder `path`, as Keras's model.export(path)
// does, for example for TensorFlow Serving. TensorFlow loads it with tf.saved_model.load, and Cohort with
// saved_model::SavedModel. The tag is "serve". The signatures "serving_default" and "serve" are the same function. Its
// inputs have the names of the model's Input() layers, and any batch size. Its outputs are called "output_0",
// "output_1" and so on, as in Keras. The graph computes in float32, whatever the model's policy is. The folder gets its
// name when it is complete. Throws FailedPreconditionError if input shapes are not known, UnimplementedError that names
// the op if TensorFlow lacks an op of the model, AlreadyExistsError that names the folder if `path` is there and is not
// an empty folder, and the errors of core/file.h.
COHORT_EXPORT void ExportSavedModel(const Model& model, const std::string& path);

}  // namespace cohort::keras
