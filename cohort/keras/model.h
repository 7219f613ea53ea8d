// Model: layers that are trained and used as a whole, with Keras 3's names, arguments and defaults. Sequential: one
// layer after another.
//
//   keras::Sequential model({keras::Flatten(), keras::Dense(128, {.activation = "relu"}),
//                            keras::Dense(10, {.activation = "softmax"})});
//   model.Compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
//   const keras::History history =
//       model.Fit(images, labels, {.epochs = 5, .validation_data = {test_images, test_labels}});
//
// A Model is a handle. Copies are the same model with the same weights. The model lives as long as a copy of it exists,
// or a ModelLayer, LayerTensor or LayerRef that came from it. It has one graph and one session. Only one thread at a
// time may use it, with one exception: several threads may call Predict and PredictAll at the same time, also before
// the model is built. No other thread may train, compile or change the model meanwhile.
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
  // Makes a model from symbolic inputs and outputs. Throws InvalidArgumentError if an output needs an Input() that is
  // not among `inputs`, or if an input is no Input() or is given twice.
  Model(const std::vector<LayerTensor>& inputs, const std::vector<LayerTensor>& outputs,
        const ModelOptions& options = {});

  const std::string& name() const;

  // Sets optimizer, losses and metrics. Weights stay; the optimizer's state begins anew. Throws InvalidArgumentError if
  // there is no loss, or if the number of losses does not fit the outputs. If the model is not built yet, Compile does
  // not check this number; a later call, such as Fit, checks it.
  void Compile(const CompileOptions& options);

  // Trains. Returns the logs of all epochs. Throws FailedPreconditionError before Compile, and InvalidArgumentError for
  // data that do not fit. Throws what a step throws, with epoch and batch added. If Fit fails in one of several
  // processes that train together, Fit throws in the other processes an error that names that process and its error.
  // If this process gets SIGTERM, Fit stops after its step, makes no further validation, and returns a History that is
  // interrupted(). BackupAndRestore then saves a backup, from which the next Fit goes on. If several workers train
  // together and one of them gets the signal, all of them do so after the same step; a validation is finished first.
  // core/process/stop_signal.h says more about the signal.
  History Fit(const ModelData& data, const FitOptions& options = {});
  History Fit(const Tensor& x, const Tensor& y, const FitOptions& options = {}) {
    return Fit(ModelData(x, y), options);
  }
  // Returns the loss and the metrics over all of the data. Throws as Fit does.
  Logs Evaluate(const ModelData& data, const EvaluateOptions& options = {});
  Logs Evaluate(const Tensor& x, const Tensor& y, const EvaluateOptions& options = {}) {
    return Evaluate(ModelData(x, y), options);
  }
  // Makes a running Fit end after the current batch. Only callbacks may call it while Fit runs.
  void StopTraining();
  // Returns the outputs for all examples, one tensor for each output. A dataset must yield batches; components after
  // the inputs are ignored.
  std::vector<Tensor> PredictAll(const ModelData& x, const PredictOptions& options = {});
  // As PredictAll, for a model with one input and one output.
  Tensor Predict(const Tensor& x, const PredictOptions& options = {});
  // Runs one training step on one batch. Returns the loss of this batch, and the metrics over all batches since the
  // metrics were last reset. Each epoch of Fit resets them at its beginning, and so does ResetMetrics.
  Logs TrainOnBatch(const ModelData& batch);
  void ResetMetrics();

  // Measures how activations and gradients change from layer to layer, on the first `batch_size` examples of `data`
  // (the first batch of a dataset). Weights stay as they are. Throws FailedPreconditionError before Compile.
  SignalReport CheckSignal(const ModelData& data, int64_t batch_size = 32);

  // Prints a table of the layers. Throws FailedPreconditionError if input shapes are not known yet.
  void Summary(std::ostream& out) const;
  void Summary() const;  // to std::cout

  // Returns true if layers and weights exist.
  bool built() const;
  // Return values from which a new model can be made. The new model begins with copies of this model's weights
  // (model_layer.h). These functions and all functions below, except state() and shared_state(), need the weights: they
  // build the model, and throw FailedPreconditionError if input shapes are not known yet.
  std::vector<LayerTensor> inputs() const;
  std::vector<LayerTensor> outputs() const;

  // Returns the layers of the model, in the order of the computation. If one of them is a model itself, its layers are
  // not in the list (see ModelLayer::layers). The input of a Sequential is not in the list.
  std::vector<ModelLayer> layers() const;
  // Throws NotFoundError, with the nearest names, if the model has no layer of this name.
  ModelLayer GetLayer(const std::string& name) const;
  // Freezes all layers of the model (false), or lets all of them be trained (true): see ModelLayer::SetTrainable.
  void SetTrainable(bool trainable);
  bool trainable() const;

  // Weights are in the order of the layers. SetWeights copies the values. It throws InvalidArgumentError for another
  // number of weights, and for another dtype or shape.
  std::vector<Tensor> GetWeights() const;
  void SetWeights(const std::vector<Tensor>& weights);
  std::vector<std::string> WeightNames() const;  // "dense/kernel"
  // Returns the names of the trainable weights of all layers that are not frozen now. A call of SetTrainable changes
  // the result at once, without a new Compile.
  std::vector<std::string> TrainableWeightNames() const;
  int64_t CountParams() const;

  // The optimizer's learning rate for the next update. These functions and Iterations throw FailedPreconditionError
  // before Compile. SetLearningRate also throws it if the rate follows a schedule.
  double GetLearningRate() const;
  void SetLearningRate(double rate);
  int64_t Iterations() const;  // updates so far

  // Returns this model as a layer for another model. The other model begins with copies of this model's weights
  // (model_layer.h).
  LayerRef AsLayer() const;

  // These functions write and read files. They are described in files/model_files.h.
  void Save(const std::string& path) const;         // ".keras"
  void SaveWeights(const std::string& path) const;  // ".weights.h5"
  void LoadWeights(const std::string& path);        // ".keras" or ".weights.h5"
  void ExportOnnx(const std::string& path) const;
  void ExportSavedModel(const std::string& path) const;

  // Return the model's graph and session, for uses that this class does not cover. The model owns them. The program may
  // add nodes.
  Graph& graph() const;
  Session& session() const;

  // Return the state that the copies of this model share. Only the sources of keras/ use it.
  ModelState& state() const { return *state_; }
  const std::shared_ptr<ModelState>& shared_state() const { return state_; }

 protected:
  explicit Model(std::shared_ptr<ModelState> state);

 private:
  std::shared_ptr<ModelState> state_;
  std::shared_ptr<Trainer> trainer_;
};

// An item of a Sequential: a layer or an Input().
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
  // Adds a layer at the end. If the first layer has an `input_shape`, adds an Input() of this shape before it. Throws
  // FailedPreconditionError if the model is built, and InvalidArgumentError for an Input() or a layer with an
  // `input_shape` that is not the first item.
  void Add(const SequentialItem& item);
  // Builds the model for batches of this shape, [batch, ...]. A call is needed only if the first item is not an Input()
  // and the program needs the weights before it gives the model data. Throws FailedPreconditionError if the model is
  // built already.
  void Build(const Shape& input_shape);

 private:
  using Items = std::shared_ptr<std::vector<LayerRef>>;
  Sequential(const ModelOptions& options, Items items);

  Items items_;
};

}  // namespace cohort::keras
