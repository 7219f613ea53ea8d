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
#include "cohort/estimator/exporter.h"

namespace cohort::estimator {

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
// - Without a cluster: trains, evaluates after checkpoints and at the end, and returns the last results. If max_steps
//   was reached before, only evaluates and exports; TensorFlow then does nothing.
// - chief, worker: start a server and train. ps: serves until training is done. All return nullopt. Worker i begins
//   5 (i + 1) seconds later than the chief (RunConfig::experimental_max_worker_delay).
// - evaluator: evaluates the newest checkpoint, again and again, until it has evaluated the last one. That is the one
//   of max_steps, or the one that the chief has named when its training ended (the file training_done in model_dir). It
//   alone evaluates and exports. Returns the last results. An evaluator that is started again goes on; a last export
//   that is there already is not made twice.
// After SIGTERM (cohort/core/process/stop_signal.h) the training stops and saves, and nothing more is evaluated or
// exported: an evaluation that is interrupted writes no results, and a chief does not write training_done, so that the
// tasks can be started again. A call that returns results otherwise then returns those of the last complete evaluation,
// or nullopt if there was none. Throws InvalidArgumentError if a limit is negative, if two exporters have one name, if
// the evaluation's data is endless and has no number of steps, or if the role is unknown; throws
// FailedPreconditionError, which names the other process, for a second evaluator or a second chief of the folder (the
// files evaluator.lock and chief.lock; a call without a cluster is both); throws DeadlineExceededError if an evaluator
// finds no new checkpoint for RunConfig::session_creation_timeout; and throws what Train, Evaluate, exporters and
// Server throw.
COHORT_EXPORT std::optional<TrainAndEvaluateResult> TrainAndEvaluate(Estimator& estimator, const TrainSpec& train_spec,
                                                                     const EvalSpec& eval_spec);

}  // namespace cohort::estimator
