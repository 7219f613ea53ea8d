// TrainAndEvaluate: trains and evaluates an Estimator, alone or as one task of a cluster. It follows
// tf.estimator.train_and_evaluate.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/estimator/estimator.h"

namespace cohort::estimator {

// What is exported after evaluations.
class COHORT_EXPORT Exporter {
 public:
  virtual ~Exporter() = default;
  virtual std::string name() const = 0;
  // Called after each evaluation; `is_final` is true after the last one. Writes into a new folder below `export_path`
  // (model_dir/export/<name>), and returns it. Returns nullopt if it exports nothing now.
  virtual std::optional<std::string> Export(Estimator& estimator, const std::string& export_path,
                                            const std::string& checkpoint_path, const EvalMetrics& metrics,
                                            bool is_final) = 0;
};

// Exports the model once, after the last evaluation.
class COHORT_EXPORT FinalExporter final : public Exporter {
 public:
  FinalExporter(std::string name, Estimator::ServingInputFn serving_input_fn);
  std::string name() const override { return name_; }
  std::optional<std::string> Export(Estimator& estimator, const std::string& export_path,
                                    const std::string& checkpoint_path, const EvalMetrics& metrics,
                                    bool is_final) override;

 private:
  const std::string name_;
  const Estimator::ServingInputFn serving_input_fn_;
};

// Exports the model after each evaluation, and keeps the newest exports.
class COHORT_EXPORT LatestExporter final : public Exporter {
 public:
  // Throws InvalidArgumentError if `exports_to_keep` is less than 1.
  LatestExporter(std::string name, Estimator::ServingInputFn serving_input_fn, int exports_to_keep = 5);
  std::string name() const override { return name_; }
  std::optional<std::string> Export(Estimator& estimator, const std::string& export_path,
                                    const std::string& checkpoint_path, const EvalMetrics& metrics,
                                    bool is_final) override;

 private:
  const std::string name_;
  const Estimator::ServingInputFn serving_input_fn_;
  const int exports_to_keep_;
};

struct COHORT_EXPORT TrainSpec {
  InputFn input_fn;
  std::optional<int64_t> max_steps;  // nullopt: until the data ends
  std::vector<std::shared_ptr<train::SessionRunHook>> hooks;
  std::vector<std::shared_ptr<train::CheckpointSaverListener>> saving_listeners;
};

struct COHORT_EXPORT EvalSpec {
  InputFn input_fn;
  std::optional<int64_t> steps = 100;  // batches of one evaluation; nullopt: until the data ends
  std::string name;
  std::vector<std::shared_ptr<train::SessionRunHook>> hooks;
  std::vector<std::shared_ptr<Exporter>> exporters;
  std::chrono::milliseconds start_delay = std::chrono::seconds(120);  // of an evaluator; may be 0
  std::chrono::milliseconds throttle = std::chrono::seconds(600);     // between two evaluations
};

// The metrics of the last evaluation, and the folders of the last exports, one for each exporter.
using TrainAndEvaluateResult = std::pair<EvalMetrics, std::vector<std::string>>;

// Does the work of this task, which TF_CONFIG names.
// - Without a cluster: trains, evaluates after checkpoints and at the end, and returns the last results.
// - chief, worker: start a server and train. ps: serves until training is done. All return nullopt. Worker i begins
//   5 (i + 1) seconds later than the chief (RunConfig::experimental_max_worker_delay).
// - evaluator: evaluates the newest checkpoint, again and again, until it has evaluated the last one. That is the one
// of
//   max_steps, or the one that the chief has named when its training ended (the file training_done in model_dir). It
//   alone evaluates and exports. Returns the last results.
// Throws InvalidArgumentError if a limit is negative, if two exporters have one name, or if the role is unknown; throws
// DeadlineExceededError if an evaluator finds no new checkpoint for RunConfig::session_creation_timeout; and throws
// what Train, Evaluate, exporters and Server throw.
COHORT_EXPORT std::optional<TrainAndEvaluateResult> TrainAndEvaluate(Estimator& estimator, const TrainSpec& train_spec,
                                                                     const EvalSpec& eval_spec);

}  // namespace cohort::estimator
