// Model: layers that are trained and used as a whole, with Keras 3's names, arguments and defaults. Sequential: one
// layer after another.
//
//   keras::Sequential model({keras::Flatten(), keras::Dense(128, {.activation = "relu"}),
//                            keras::Dense(10, {.activation = "softmax"})});
//   model.Compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
//   const keras::History history =
//       model.Fit(images, labels, {.epochs = 5, .validation_data = {test_images, test_labels}});
//
// A model owns one graph and one session. It is for one thread at a time, with one exception: several threads may call
// Predict and PredictAll at the same time, also before the model is built. They may not do so while another thread
// trains, compiles or loads the model.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/distribute/strategy.h"
#include "cohort/keras/callbacks/callback.h"
#include "cohort/keras/callbacks/history.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/keras/training/model_data.h"
#include "cohort/keras/training/signal_check.h"
#include "cohort/keras/training/train_step.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {

class Batches;
struct BatchTargets;
struct CompiledModel;
class LayerGraph;
struct FitProgress;
struct LoadOptions;
class ModelEngine;
class StepFunction;
struct WeightGroup;

struct ModelOptions {
  std::string name;  // "": "sequential", "functional"
  // "float32", or "mixed_bfloat16": layers compute in bfloat16, weights stay float32.
  std::string dtype_policy = "float32";
  int64_t seed = 0;  // of initial values and of random layers
  // Threads, placement. With MultiWorkerMirrored in a cluster the numbers of threads are ignored: those of the server
  // (MultiWorkerOptions::server.config) count.
  SessionConfig session;
  // Replicas that train together; null: one alone. Batches given to Fit are global and are divided among them.
  distribute::StrategyPtr strategy = nullptr;
};

// One loss, or one for each output: "mse", {"mse", keras::Huber()}.
class LossList {
 public:
  LossList() = default;
  LossList(const char* name) : losses_{LossArgument(name)} {}
  LossList(const std::string& name) : losses_{LossArgument(name)} {}
  LossList(LossPtr loss) : losses_{LossArgument(std::move(loss))} {}
  LossList(std::initializer_list<LossArgument> losses) : losses_(losses) {}
  LossList(std::vector<LossArgument> losses) : losses_(std::move(losses)) {}
  const std::vector<LossArgument>& get() const { return losses_; }

 private:
  std::vector<LossArgument> losses_;
};

struct CompileOptions {
  OptimizerArgument optimizer = "rmsprop";
  // Of the outputs in order. One alone is that of every output; an empty argument: that output is not trained.
  LossList loss;
  std::vector<double> loss_weights;              // one an output; empty: 1 each
  std::vector<MetricArgument> metrics;           // of every output with a loss; sample weights do not count in them
  std::vector<MetricArgument> weighted_metrics;  // those in which they do
};

struct FitOptions {
  int64_t batch_size = 32;  // of tensors; datasets come in batches
  int epochs = 1;           // the number of the last epoch
  int verbose = 1;          // 0 silent, 1 progress bar, 2 a line an epoch
  std::vector<CallbackPtr> callbacks;
  // A share in (0, 1) of the examples, the last ones before any shuffling, that are not trained on but validate.
  double validation_split = 0.0;
  ModelData validation_data;
  bool shuffle = true;  // of tensors
  std::map<int64_t, double> class_weight;
  int initial_epoch = 0;
  int64_t steps_per_epoch = 0;        // 0: until the data ends
  int64_t validation_steps = 0;       // batches, each time the first ones; 0: until the data ends
  int64_t validation_batch_size = 0;  // of tensors; 0: batch_size
  int validation_freq = 1;            // epochs between validations
  // Of the order of shuffled tensors. The order follows from it and from the number of the epoch, counted over all
  // calls of Fit, or from initial_epoch on where that is given.
  int64_t seed = 0;
  // Before the first step ever, and once a model: a forward and a backward pass of the first batch measure how the
  // signal goes through the layers; what collapses or explodes is a warning with numbers and a remedy.
  bool signal_check = true;
  // How several processes divide the batches of a dataset (docs/strategies.md). Tensors are divided by kData.
  data::AutoShardPolicy auto_shard = data::AutoShardPolicy::kAuto;
  // Steps between comparisons of the weights and the optimizer's variables of all replicas; 0: only where Fit begins
  // and ends.
  int64_t replica_check_steps = 500;
};

struct EvaluateOptions {
  int64_t batch_size = 32;
  int verbose = 1;
  int64_t steps = 0;  // 0: until the data ends
  std::vector<CallbackPtr> callbacks;
  data::AutoShardPolicy auto_shard = data::AutoShardPolicy::kAuto;
};

struct PredictOptions {
  int64_t batch_size = 32;
  int64_t steps = 0;
};

class Model : public CallbackHost {
 public:
  // Throws InvalidArgumentError for inputs and outputs that do not hang together.
  Model(const std::vector<LayerTensor>& inputs, const std::vector<LayerTensor>& outputs,
        const ModelOptions& options = {});
  ~Model() override;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const std::string& name() const { return options_.name; }

  // Throws InvalidArgumentError for losses and metrics that do not go with the outputs. Weights stay; the optimizer
  // begins anew.
  void Compile(const CompileOptions& options);

  // Trains. Throws FailedPreconditionError before Compile, InvalidArgumentError for data that does not fit, and what a
  // step throws, with epoch and batch.
  // Where one of several processes that train together fails, the others' Fit throws an error that names it and why.
  History Fit(const ModelData& data, const FitOptions& options = {});
  History Fit(const Tensor& x, const Tensor& y, const FitOptions& options = {}) {
    return Fit(ModelData(x, y), options);
  }
  // Loss and metrics over all of the data.
  Logs Evaluate(const ModelData& data, const EvaluateOptions& options = {});
  Logs Evaluate(const Tensor& x, const Tensor& y, const EvaluateOptions& options = {}) {
    return Evaluate(ModelData(x, y), options);
  }
  // The outputs for all examples, one tensor an output. Datasets: of batches; components behind the inputs are ignored.
  std::vector<Tensor> PredictAll(const ModelData& x, const PredictOptions& options = {});
  // Of a model with one input and one output.
  Tensor Predict(const Tensor& x, const PredictOptions& options = {});
  // One step on one batch, outside of Fit: the loss and the metrics since the epoch began or ResetMetrics.
  Logs TrainOnBatch(const ModelData& batch);
  void ResetMetrics();

  // How the signal goes through the layers on a batch; `data`: its first batch of `batch_size` examples is taken.
  SignalReport CheckSignal(const ModelData& data, int64_t batch_size = 32);

  // A table of the layers. Throws FailedPreconditionError where input shapes are not known yet.
  void Summary(std::ostream& out) const;
  void Summary() const;  // to std::cout

  // Layers and weights exist.
  bool built() const;
  std::vector<LayerInput> outputs() const;
  // In the model's order: layer after layer. Need input shapes to be known, as do all functions below.
  std::vector<Tensor> GetWeights() override;
  void SetWeights(const std::vector<Tensor>& weights) override;
  std::vector<std::string> WeightNames() const override;  // "dense/kernel"
  std::vector<std::string> TrainableWeightNames() const;
  int64_t CountParams() const;

  // A step of training and of evaluation, as graphs; see train_step.h.
  virtual void TrainStep(StepContext& step) const;
  virtual void TestStep(StepContext& step) const;

  // The model as a layer of another model. Needs input shapes to be known. Initial values are drawn anew there.
  LayerRef AsLayer() const;

  // CallbackHost.
  void StopTraining() override { stop_training_ = true; }
  bool stop_training() const override { return stop_training_; }
  bool is_chief() const override;
  void AwaitWorkers() override;
  double GetLearningRate() override;
  void SetLearningRate(double rate) override;
  bool has_learning_rate_schedule() const override;
  int64_t Iterations() override;
  MetricDirection DirectionOf(const std::string& name) const override;

  // The whole model as a Keras 3 file, `path` ends in ".keras": layers, weights, what Compile was given and the
  // optimizer's state. Keras and LoadModel (load_model.h) make the same model of it. Needs input shapes to be known.
  // Throws UnimplementedError for layers that a file cannot describe, and what core/file.h throws; an optimizer, loss
  // or metric of the program's own is left out with a warning.
  void Save(const std::string& path) override;
  // Weights and the optimizer's state alone, `path` ends in ".weights.h5".
  void SaveWeights(const std::string& path) override;
  // From either kind of file. Layers are found by class and order, as Keras finds them. Throws InvalidArgumentError
  // that names file, group and layer for weights that do not fit - nothing has changed then -, DataLossError for
  // damaged files. An optimizer's state that does not fit is passed over with a warning.
  void LoadWeights(const std::string& path);
  // The inference graph as an ONNX file (opset 17, float32), for onnxruntime and the like. Inputs and outputs are
  // called as their layers; images stay [batch, rows, columns, channels]. Needs input shapes to be known. Throws
  // UnimplementedError that names an op - of a layer of the program's own - that has no form in ONNX.
  void ExportOnnx(const std::string& path);
  std::string SerializedGraph() override;
  std::string BackUpTraining() override;
  bool RestoreTraining(const std::optional<std::string>& backup, const std::string& where) override;

  // The graph and the session of the model, for what this class does not do. Adding nodes is allowed.
  Graph& graph();
  Session& session();

 protected:
  explicit Model(const ModelOptions& options);
  // Of a model that may know its layers only with data: makes them for inputs of these shapes and dtypes. `data` empty:
  // null where they are not known without.
  virtual std::shared_ptr<const LayerGraph> MakeLayers(const data::ElementSpec& data) const;
  // Makes layers and weights for inputs of these shapes and dtypes if they are not there yet. Thread-safe.
  void BuildFor(const data::ElementSpec& data) { EngineFor(data); }

 private:
  friend std::unique_ptr<Model> LoadModel(const std::string& path, const LoadOptions& options);

  // Returns the engine; makes layers and weights first if they are not there yet. Thread-safe. Throws
  // FailedPreconditionError if the shapes of the inputs are known neither from the layers nor from `data`.
  ModelEngine& EngineFor(const data::ElementSpec& data) const EXCLUDES(build_mu_);
  ModelEngine& engine() const { return EngineFor({}); }
  // With the optimizer of Compile.
  ModelEngine& CompiledEngine();
  void ResolveCompiled();
  const StepFunction& Step(bool training, const std::vector<data::TensorSpec>& y_specs);
  void RequireCompiled(const char* caller) const;
  void Prepare(const ModelData& data, const char* caller);
  BatchTargets TrainedTargets() const;
  // Before several processes train together: that they do the same.
  void ExpectAgreement(Batches& batches, Batches* validation, const FitOptions& options);
  History FitHere(const ModelData& data, const FitOptions& options);
  Logs EvaluateHere(const ModelData& data, const EvaluateOptions& options);
  // `where`: the epoch, for errors.
  void ReportSignal(Batches& batches, const StepFunction& step, const std::string& where);
  Logs RunTest(Batches& batches, Callback& callbacks, const std::string& where);
  // The parts of files. `where` names one.
  std::vector<WeightGroup> WeightGroups();
  void SetWeightGroups(const std::vector<WeightGroup>& groups, const std::string& where);
  std::vector<Tensor> OptimizerState();
  // False, with a warning, where they do not fit.
  bool SetOptimizerState(const std::vector<Tensor>& values, const std::string& where);
  // States of the metrics of training.
  std::vector<ops::Variable> MetricVariables();
  FitProgress& RunningFit(const char* caller) const;
  std::vector<std::string> OutputLayers() const;
  // False where the layers wait for data.
  bool MakeKnownLayers();

  ModelOptions options_;
  mutable Mutex build_mu_;
  // Set once, under build_mu_; read after a call of EngineFor.
  mutable std::shared_ptr<const LayerGraph> layers_;
  mutable std::unique_ptr<ModelEngine> engine_ GUARDED_BY(build_mu_);
  std::optional<CompileOptions> compile_options_;
  std::unique_ptr<const CompiledModel> compiled_;  // null until the layers are known
  std::unique_ptr<StepFunction> train_;
  std::unique_ptr<StepFunction> test_;
  std::vector<Tensor> waiting_state_;  // of the optimizer, from a file, until the training step has its slots
  bool stop_training_ = false;
  FitProgress* fit_ = nullptr;  // while Fit runs
  bool signal_checked_ = false;
  int64_t epochs_fitted_ = 0;
};

// What a Sequential is made of: layers, and possibly an Input() as the first item.
class SequentialItem {
 public:
  SequentialItem(LayerRef layer) : layer_(std::move(layer)) {}
  SequentialItem(const LayerTensor& input) : layer_(input.call()->layer) {}
  const LayerRef& layer() const { return layer_; }

 private:
  LayerRef layer_;
};

class Sequential : public Model {
 public:
  explicit Sequential(const std::vector<SequentialItem>& items = {}, const ModelOptions& options = {});
  // Before anything has built the model.
  void Add(const SequentialItem& item);
  // Makes the layers for examples of this shape ([batch, ...]), where no Input says it.
  void Build(const Shape& input_shape);

 protected:
  std::shared_ptr<const LayerGraph> MakeLayers(const data::ElementSpec& data) const override;

 private:
  std::shared_ptr<const LayerGraph> Chain(const LayerTensor& input, size_t first) const;
  std::vector<LayerRef> items_;
};

}  // namespace cohort::keras
