// Model: layers that are trained and used as a whole, with Keras 3's names, arguments and defaults. Sequential: one
// layer after another.
//
//   keras::Sequential model({keras::Flatten(), keras::Dense(128, {.activation = "relu"}),
//                            keras::Dense(10, {.activation = "softmax"})});
//   model.Compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
//   const keras::History history =
//       model.Fit(images, labels, {.epochs = 5, .validation_data = {test_images, test_labels}});
//
// A Model is a handle. Copies are the same model with the same weights, and the model ends with its last copy. It has
// one graph and one session. One thread at a time may use it, with one exception: several threads may call Predict and
// PredictAll at the same time, also before the model is built. They must not do so while another thread trains,
// compiles or loads the model.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/history.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/model_layer.h"
#include "cohort/keras/training/options.h"
#include "cohort/keras/training/signal_check.h"

namespace cohort::keras {

class ModelState;
class Trainer;

// A model of layers. The comment at the top of this file says who may call it.
class COHORT_EXPORT Model {
 public:
  // Makes a model from symbolic inputs and outputs. Throws InvalidArgumentError if the outputs do not depend on the
  // inputs alone.
  Model(const std::vector<LayerTensor>& inputs, const std::vector<LayerTensor>& outputs,
        const ModelOptions& options = {});

  const std::string& name() const;

  // Sets optimizer, losses and metrics. Weights stay; the optimizer's state begins anew. Throws InvalidArgumentError
  // for losses and metrics that do not fit the outputs.
  void Compile(const CompileOptions& options);

  // Trains. Returns the logs of all epochs. Throws FailedPreconditionError before Compile, and InvalidArgumentError for
  // data that do not fit. Throws what a step throws, with epoch and batch added. If one of several processes that train
  // together fails, Fit throws at the others an error that names the process and the reason.
  History Fit(const ModelData& data, const FitOptions& options = {});
  History Fit(const Tensor& x, const Tensor& y, const FitOptions& options = {}) {
    return Fit(ModelData(x, y), options);
  }
  // Returns the loss and the metrics over all of the data.
  Logs Evaluate(const ModelData& data, const EvaluateOptions& options = {});
  Logs Evaluate(const Tensor& x, const Tensor& y, const EvaluateOptions& options = {}) {
    return Evaluate(ModelData(x, y), options);
  }
  // For callbacks: makes Fit end after the current batch.
  void StopTraining();
  // Returns the outputs for all examples, one tensor for each output. A dataset must yield batches; components after
  // the inputs are ignored.
  std::vector<Tensor> PredictAll(const ModelData& x, const PredictOptions& options = {});
  // As PredictAll, for a model with one input and one output.
  Tensor Predict(const Tensor& x, const PredictOptions& options = {});
  // Runs one training step on one batch. Returns the loss and the metrics since the epoch began or since ResetMetrics.
  Logs TrainOnBatch(const ModelData& batch);
  void ResetMetrics();

  // Returns how activations and gradients change from layer to layer on one batch. Takes the first batch of
  // `batch_size` examples of `data`.
  SignalReport CheckSignal(const ModelData& data, int64_t batch_size = 32);

  // Prints a table of the layers. Throws FailedPreconditionError if input shapes are not known yet.
  void Summary(std::ostream& out) const;
  void Summary() const;  // to std::cout

  // Returns true if layers and weights exist.
  bool built() const;
  // Return values to make a further model of, which begins with copies of this model's weights (model_layer.h). These
  // functions and all functions below throw FailedPreconditionError if input shapes are not known yet.
  std::vector<LayerTensor> inputs() const;
  std::vector<LayerTensor> outputs() const;

  // Returns the model's own layers, in its order. The input of a Sequential is not among them.
  std::vector<ModelLayer> layers() const;
  // Throws NotFoundError, with the nearest names, if the model has no layer of this name.
  ModelLayer GetLayer(const std::string& name) const;
  // Freezes all layers of the model, or has all of them trained: see ModelLayer::SetTrainable.
  void SetTrainable(bool trainable);
  bool trainable() const;

  // Weights are in the order of the layers.
  std::vector<Tensor> GetWeights() const;
  void SetWeights(const std::vector<Tensor>& weights);
  std::vector<std::string> WeightNames() const;           // "dense/kernel"
  std::vector<std::string> TrainableWeightNames() const;  // as layers are frozen now, before or after Compile
  int64_t CountParams() const;

  // The optimizer's learning rate for the next update. Set throws FailedPreconditionError if the rate follows a
  // schedule.
  double GetLearningRate() const;
  void SetLearningRate(double rate);
  int64_t Iterations() const;  // updates so far

  // Returns the model as a layer of another model, which begins with copies of its weights (model_layer.h).
  LayerRef AsLayer() const;

  // Files, as files/model_files.h describes them.
  void Save(const std::string& path) const;         // ".keras"
  void SaveWeights(const std::string& path) const;  // ".weights.h5"
  void LoadWeights(const std::string& path);        // ".keras" or ".weights.h5"
  void ExportOnnx(const std::string& path) const;

  // Return the model's graph and session, for uses that this class does not cover. The program may add nodes.
  Graph& graph() const;
  Session& session() const;

  // Returns what the copies of this model share. Used by the sources of keras/.
  ModelState& state() const { return *state_; }
  const std::shared_ptr<ModelState>& shared_state() const { return state_; }

 protected:
  explicit Model(std::shared_ptr<ModelState> state);

 private:
  std::shared_ptr<ModelState> state_;
  std::shared_ptr<Trainer> trainer_;
};

// An item of a Sequential: a layer. The first item may be an Input().
class COHORT_EXPORT SequentialItem {
 public:
  SequentialItem(LayerRef layer) : layer_(std::move(layer)) {}
  SequentialItem(const LayerTensor& input) : layer_(input.call()->layer) {}
  SequentialItem(const ModelLayer& layer) : layer_(layer.ref()) {}
  const LayerRef& layer() const { return layer_; }

 private:
  LayerRef layer_;
};

// A model of layers, each of which takes the output of the layer before it.
class COHORT_EXPORT Sequential : public Model {
 public:
  explicit Sequential(const std::vector<SequentialItem>& items = {}, const ModelOptions& options = {});
  // Adds a layer at the end. Requires: the model is not built yet.
  void Add(const SequentialItem& item);
  // Makes the layers for examples of this shape ([batch, ...]). Used if the first item is no Input.
  void Build(const Shape& input_shape);

 private:
  using Items = std::shared_ptr<std::vector<LayerRef>>;
  Sequential(const ModelOptions& options, Items items);

  Items items_;
};

}  // namespace cohort::keras
