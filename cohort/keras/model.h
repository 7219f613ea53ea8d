// Model: layers that are trained and used as a whole, with Keras 3's names, arguments and defaults. Sequential: one
// layer after another.
//
//   keras::Sequential model({keras::Flatten(), keras::Dense(128, {.activation = "relu"}),
//                            keras::Dense(10, {.activation = "softmax"})});
//   model.Compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
//   const keras::History history =
//       model.Fit(images, labels, {.epochs = 5, .validation_data = {test_images, test_labels}});
//
// A Model is a handle: copies are the same model, with the same weights, and the last copy ends it. It has one graph
// and one session. It is for one thread at a time, with one exception: several threads may call Predict and PredictAll
// at the same time, also before the model is built. They may not do so while another thread trains, compiles or loads
// the model.
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
#include "cohort/keras/training/options.h"
#include "cohort/keras/training/signal_check.h"

namespace cohort::keras {

class ModelState;
class Trainer;

class COHORT_EXPORT Model {
 public:
  // Throws InvalidArgumentError for inputs and outputs that do not hang together.
  Model(const std::vector<LayerTensor>& inputs, const std::vector<LayerTensor>& outputs,
        const ModelOptions& options = {});

  const std::string& name() const;

  // Throws InvalidArgumentError for losses and metrics that do not go with the outputs. Weights stay; the optimizer
  // begins anew.
  void Compile(const CompileOptions& options);

  // Trains. Throws FailedPreconditionError before Compile, InvalidArgumentError for data that does not fit, and what a
  // step throws, with epoch and batch.
  // If one of several processes that train together fails, the others' Fit throws an error that names it and why.
  History Fit(const ModelData& data, const FitOptions& options = {});
  History Fit(const Tensor& x, const Tensor& y, const FitOptions& options = {}) {
    return Fit(ModelData(x, y), options);
  }
  // Loss and metrics over all of the data.
  Logs Evaluate(const ModelData& data, const EvaluateOptions& options = {});
  Logs Evaluate(const Tensor& x, const Tensor& y, const EvaluateOptions& options = {}) {
    return Evaluate(ModelData(x, y), options);
  }
  // In a callback: Fit ends after the current batch.
  void StopTraining();
  // The outputs for all examples, one tensor an output. Datasets: of batches; components behind the inputs are ignored.
  std::vector<Tensor> PredictAll(const ModelData& x, const PredictOptions& options = {});
  // Of a model with one input and one output.
  Tensor Predict(const Tensor& x, const PredictOptions& options = {});
  // One step on one batch, outside of Fit: the loss and the metrics since the epoch began or ResetMetrics.
  Logs TrainOnBatch(const ModelData& batch);
  void ResetMetrics();

  // How the signal goes through the layers on a batch; `data`: its first batch of `batch_size` examples is taken.
  SignalReport CheckSignal(const ModelData& data, int64_t batch_size = 32);

  // A table of the layers. Throws FailedPreconditionError if input shapes are not known yet.
  void Summary(std::ostream& out) const;
  void Summary() const;  // to std::cout

  // Layers and weights exist.
  bool built() const;
  std::vector<LayerInput> outputs() const;
  // In the model's order: layer after layer. Need input shapes to be known, as do all functions below.
  std::vector<Tensor> GetWeights() const;
  void SetWeights(const std::vector<Tensor>& weights);
  std::vector<std::string> WeightNames() const;  // "dense/kernel"
  std::vector<std::string> TrainableWeightNames() const;
  int64_t CountParams() const;

  // The optimizer's rate for the next update. Set throws FailedPreconditionError if it follows a schedule.
  double GetLearningRate() const;
  void SetLearningRate(double rate);
  int64_t Iterations() const;  // updates so far

  // The model as a layer of another model. Needs input shapes to be known. Initial values are drawn anew there.
  LayerRef AsLayer() const;

  // Files, as files/model_files.h has them.
  void Save(const std::string& path) const;         // ".keras"
  void SaveWeights(const std::string& path) const;  // ".weights.h5"
  void LoadWeights(const std::string& path);        // either
  void ExportOnnx(const std::string& path) const;

  // The graph and the session of the model, for what this class does not do. Adding nodes is allowed.
  Graph& graph() const;
  Session& session() const;

  // What the copies share, for the sources of keras/.
  ModelState& state() const { return *state_; }

 protected:
  explicit Model(std::shared_ptr<ModelState> state);

 private:
  std::shared_ptr<ModelState> state_;
  std::shared_ptr<Trainer> trainer_;
};

// What a Sequential is made of: layers, and possibly an Input() as the first item.
class COHORT_EXPORT SequentialItem {
 public:
  SequentialItem(LayerRef layer) : layer_(std::move(layer)) {}
  SequentialItem(const LayerTensor& input) : layer_(input.call()->layer) {}
  const LayerRef& layer() const { return layer_; }

 private:
  LayerRef layer_;
};

class COHORT_EXPORT Sequential : public Model {
 public:
  explicit Sequential(const std::vector<SequentialItem>& items = {}, const ModelOptions& options = {});
  // Before anything has built the model.
  void Add(const SequentialItem& item);
  // Makes the layers for examples of this shape ([batch, ...]), if no Input says it.
  void Build(const Shape& input_shape);

 private:
  using Items = std::shared_ptr<std::vector<LayerRef>>;
  Sequential(const ModelOptions& options, Items items);

  Items items_;
};

}  // namespace cohort::keras
