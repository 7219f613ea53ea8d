// Estimator: trains, evaluates and predicts with a model that a function builds. It follows tf.estimator.Estimator.
//
//   estimator::EstimatorSpec ModelFn(const estimator::ModelFnArgs& args) {
//     const Output logits = layers::Dense(args.features[0], 1);
//     const Output loss = losses::MeanSquaredError(args.labels[0], logits);
//     const ops::Variable step = ops::GetOrCreateGlobalStep(args.graph);
//     Node* train_op = train::AdagradOptimizer(0.05).Minimize(loss, step);
//     return {.mode = args.mode, .loss = loss, .train_op = train_op};
//   }
//   estimator::Estimator model(ModelFn, {.model_dir = "model"});
//   model.Train([] { return data::Dataset::FromTensorSlices({x, y}).Batch(32); });
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/checkpoint/init_from_checkpoint.h"
#include "cohort/cluster/server.h"
#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/estimator/file_lock.h"
#include "cohort/estimator/run_config.h"
#include "cohort/estimator/v1.h"
#include "cohort/graph/graph.h"
#include "cohort/train/hooks/hooks.h"
#include "cohort/train/monitored_session.h"
#include "cohort/train/scaffold.h"
#include "cohort/train/session_run_hook.h"

namespace cohort::estimator {

struct ModelGraph;
using train::WarmStartSettings;

enum class ModeKeys { kTrain, kEval, kPredict };

// Returns "train", "eval" or "infer", TensorFlow's names.
COHORT_EXPORT std::string ToString(ModeKeys mode);

// What a model function gets. The dataset of the input function gives features and labels: its last component is the
// labels, and the components before it are the features. If there is only one component, or the mode is kPredict, all
// components are features.
struct COHORT_EXPORT ModelFnArgs {
  Graph& graph;
  std::vector<Output> features;
  std::vector<Output> labels;  // one element, or none
  ModeKeys mode;
  const RunConfig& config;
  // The features by the names that the input function has given (Input), or by the names of the placeholders of an
  // export. It is empty if the input function gives no names.
  std::map<std::string, Output> named_features;

  // Returns the feature with this name. Throws NotFoundError, which lists the names, if there is none.
  Output feature(const std::string& name) const;
};

// What a model function returns. kTrain needs loss and train_op, kEval needs loss, kPredict needs predictions.
struct COHORT_EXPORT EstimatorSpec {
  ModeKeys mode = ModeKeys::kTrain;
  std::map<std::string, Output> predictions;  // the first dimension of each is the batch
  Output loss;                                // a scalar
  Node* train_op = nullptr;                   // must change the global step
  std::map<std::string, metrics::Metric> eval_metric_ops;
  std::vector<std::shared_ptr<train::SessionRunHook>> training_chief_hooks;
  std::vector<std::shared_ptr<train::SessionRunHook>> training_hooks;
  std::shared_ptr<train::Scaffold> scaffold;
  std::vector<std::shared_ptr<train::SessionRunHook>> evaluation_hooks;
  std::vector<std::shared_ptr<train::SessionRunHook>> prediction_hooks;
  // For exports: the outputs of each signature. If it is empty, "serving_default" gives the predictions. A single
  // signature is also the default; of several, one must be called "serving_default".
  std::map<std::string, std::map<std::string, Output>> export_outputs;
};

using ModelFn = std::function<EstimatorSpec(const ModelFnArgs& args)>;
// What an InputFn returns. A dataset converts to it; the names of the features, one for each, are optional:
//   return {dataset, {"age", "income"}};
struct COHORT_EXPORT Input {
  data::Dataset dataset;
  std::vector<std::string> feature_names;
  Input(data::Dataset dataset) : dataset(std::move(dataset)) {}  // NOLINT(google-explicit-constructor)
  Input(data::Dataset dataset, std::vector<std::string> feature_names)
      : dataset(std::move(dataset)), feature_names(std::move(feature_names)) {}
};
// Called once for each call of Train, Evaluate and Predict, on each task. The dataset is not split between tasks. If
// the number of names does not fit the dataset, the call throws InvalidArgumentError.
using InputFn = std::function<Input()>;

struct COHORT_EXPORT TrainOptions {
  std::vector<std::shared_ptr<train::SessionRunHook>> hooks;
  // At most one of the two may be set. Neither: train until the data ends. `steps` are further steps, and `max_steps`
  // is a number of the global step.
  std::optional<int64_t> steps;
  std::optional<int64_t> max_steps;
  std::vector<std::shared_ptr<train::CheckpointSaverListener>> saving_listeners;
  // The server of this task in a cluster; TrainAndEvaluate gives it. Null: this process trains alone.
  Server* server = nullptr;
};

struct COHORT_EXPORT EvaluateOptions {
  std::optional<int64_t> steps;  // batches; nullopt: until the data ends
  std::vector<std::shared_ptr<train::SessionRunHook>> hooks;
  std::string checkpoint_path;  // "": the newest of model_dir
  std::string name;             // the summaries go to model_dir/eval, or model_dir/eval_<name>
};

struct COHORT_EXPORT PredictOptions {
  std::vector<std::shared_ptr<train::SessionRunHook>> hooks;
  std::string checkpoint_path;  // "": the newest of model_dir
};

// The result of an evaluation: "loss" (mean over batches), "global_step" and the metrics of the model function, by
// name.
using EvalMetrics = std::map<std::string, double>;
// The predictions for one example, by name: each value has the shape of a prediction without the batch.
using Prediction = std::map<std::string, Tensor>;

// The program owns it. Used by one thread. Each call builds a new graph. All values are in checkpoints in model_dir.
class COHORT_EXPORT Estimator {
 public:
  // Uses the settings that a RunConfig has by itself, and says so in the log.
  explicit Estimator(ModelFn model_fn);
  // Logs the settings. Makes the folder. Throws what CheckRunConfig and RoleOf throw, InvalidArgumentError if
  // `model_fn` is null, and the errors of core/file.h if the folder cannot be made or written.
  // With `warm_start_from`, Train lets the variables begin with the values of that checkpoint (see
  // checkpoint/init_from_checkpoint.h), unless model_dir has a checkpoint. Only the chief reads it, and Train then
  // throws what train::WarmStart throws.
  Estimator(ModelFn model_fn, const RunConfig& config,
            std::optional<train::WarmStartSettings> warm_start_from = std::nullopt);

  // Trains. Only one process at a time is the chief of a folder. A folder with checkpoints is trained further. Ends at
  // `steps`, at `max_steps`, at the end of the data, or if a hook asks. The chief saves a checkpoint at the beginning,
  // as often as the settings say, and at the end. Throws InvalidArgumentError if both numbers of steps are set, if one
  // is not positive, or if the model function's spec lacks something; FailedPreconditionError if another process trains
  // as chief in the folder; NanLossDuringTrainingError; and what sessions and hooks throw.
  void Train(const InputFn& input_fn, const TrainOptions& options = {});
  // Restores a checkpoint, and evaluates the model on the data. Without a checkpoint, evaluates the initial values.
  // Writes the metrics as summaries. Throws InvalidArgumentError if the data is endless and there is no number of
  // steps, FailedPreconditionError if there is no data, DataLossError if the folder's state file names checkpoints and
  // none is complete, and what sessions and hooks throw.
  EvalMetrics Evaluate(const InputFn& input_fn, const EvaluateOptions& options = {});
  // Restores a checkpoint, and returns the predictions for all examples of the data. Throws as Evaluate.
  std::vector<Prediction> Predict(const InputFn& input_fn, const PredictOptions& options = {});

  // Writes the model for prediction as a SavedModel (saved_model.h) into a new folder
  // `export_dir_base`/<seconds since 1970>, and returns the folder. `serving_input_fn` adds the placeholders: one for
  // each feature; the inputs of the signatures have their names. The folder gets its name when it is complete. Until
  // then it is called temp-<seconds>. Throws NotFoundError if there is no checkpoint, UnimplementedError, which names
  // the op, if TensorFlow does not have an op of the model, and what WriteSavedModel throws.
  using ServingInputFn = std::function<std::vector<Output>(Graph& graph)>;
  struct ExportOptions {
    std::string checkpoint_path;  // "": the newest of model_dir
    bool reuse_equal = false;     // if an export with the same contents is there, return it
  };
  std::string ExportModel(const std::string& export_dir_base, const ServingInputFn& serving_input_fn,
                          const ExportOptions& options);
  std::string ExportModel(const std::string& export_dir_base, const ServingInputFn& serving_input_fn) {
    return ExportModel(export_dir_base, serving_input_fn, {});
  }

  const std::string& model_dir() const { return config_.model_dir; }
  const RunConfig& config() const { return config_; }
  const TaskRole& role() const { return role_; }
  // Returns the prefix of the newest checkpoint, or "" if there is none.
  std::string latest_checkpoint() const;
  // Locks model_dir for the training of this process (the file TrainingLockFile), until the last holder is gone. Train
  // does so, too. Throws FailedPreconditionError, which names the other process, if another one trains there.
  std::shared_ptr<FileLock> LockForTraining();
  std::string TrainingLockFile() const { return model_dir() + "/chief.lock"; }
  std::vector<std::string> GetVariableNames() const;
  // Returns a value of the newest checkpoint. Throws NotFoundError if there is no checkpoint or no such variable.
  Tensor GetVariableValue(const std::string& name) const;

 private:
  // As latest_checkpoint, but throws DataLossError if the state file names checkpoints and none is complete.
  std::string TrainedCheckpoint() const;
  // Builds the graph of one call: global step, data, model.
  void Build(ModelGraph& model, const InputFn& input_fn, ModeKeys mode, bool in_cluster) const;
  std::vector<std::shared_ptr<train::SessionRunHook>> TrainingHooks(const ModelGraph& model,
                                                                    const TrainOptions& options) const;
  std::shared_ptr<train::SessionRunHook> SaverHook(const ModelGraph& model, const TrainOptions& options) const;
  void RunTraining(ModelGraph& model, const TrainOptions& options);
  // Opens a session with the values of a checkpoint.
  std::unique_ptr<train::MonitoredSession> OpenRestored(
      ModelGraph& model, const std::string& checkpoint,
      std::vector<std::shared_ptr<train::SessionRunHook>> hooks) const;
  void WriteEvalSummary(const std::string& name, const EvalMetrics& metrics, const std::string& checkpoint) const;

  const ModelFn model_fn_;
  RunConfig config_;
  const TaskRole role_;
  const std::optional<train::WarmStartSettings> warm_start_from_;
  std::weak_ptr<FileLock> training_lock_;
};

}  // namespace cohort::estimator
