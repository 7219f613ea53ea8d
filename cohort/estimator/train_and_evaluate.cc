// TrainAndEvaluate for each role. The chief's last act is to write the file training_done, which has the final step.
// The evaluator is not in the cluster and reads only the folder. After SIGTERM (StopSignal) nothing more is evaluated
// or exported, and the chief does not write training_done, because the training is to go on later.
#include "cohort/estimator/train_and_evaluate.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/stop_signal.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"
#include "cohort/estimator/model_graph.h"

namespace cohort::estimator {
namespace {

constexpr const char* kTaskLog = "estimator";
constexpr std::chrono::milliseconds kLook{200};  // between two looks of an evaluator into the folder
using SteadyClock = std::chrono::steady_clock;

// The chief writes it when its training has ended: the final step, and a number that no other end has.
std::string DoneFile(const Estimator& estimator) { return estimator.model_dir() + "/training_done"; }
// The evaluator copies the file above to it when it has evaluated and exported the final step.
std::string EvaluatedFile(const Estimator& estimator) { return estimator.model_dir() + "/evaluation_done"; }
std::string EvaluatorLockFile(const Estimator& estimator) { return estimator.model_dir() + "/evaluator.lock"; }
std::string ReadIfThere(const std::string& path) { return FileExists(path) ? ReadFile(path) : ""; }

double SecondsOf(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

void CheckSpecs(const TrainSpec& train_spec, const EvalSpec& eval_spec, bool evaluates) {
  if (train_spec.input_fn == nullptr || eval_spec.input_fn == nullptr) {
    throw InvalidArgumentError("[estimator] expected an input function in TrainSpec and in EvalSpec; got none");
  }
  if (eval_spec.start_delay.count() < 0 || eval_spec.throttle.count() < 0) {
    throw InvalidArgumentError(StrCat("[estimator] expected start_delay and throttle of at least 0; got ",
                                      SecondsOf(eval_spec.start_delay), " s and ", SecondsOf(eval_spec.throttle),
                                      " s"));
  }
  // Otherwise the training would be over before an evaluation could say so.
  if (evaluates && !eval_spec.steps && eval_spec.input_fn().dataset.Cardinality() == data::kInfiniteCardinality) {
    throw InvalidArgumentError(
        "[estimator] expected EvalSpec::steps, because the evaluation's data is endless (Repeat); got none");
  }
  std::set<std::string> names;
  for (const auto& exporter : eval_spec.exporters) {
    if (exporter == nullptr) throw InvalidArgumentError("[estimator] expected exporters; got a null pointer");
    if (!names.insert(exporter->name()).second) {
      throw InvalidArgumentError(
          StrCat("[estimator] expected exporters with different names; two are called \"", exporter->name(), "\""));
    }
  }
}

std::string ExportFolder(const Estimator& estimator, const Exporter& exporter) {
  return StrCat(estimator.model_dir(), "/export/", exporter.name());
}

// Removes exports that a process did not complete, because it was killed. Requires: no other process exports here.
void RemoveAbandonedExports(const Estimator& estimator, const EvalSpec& spec) {
  for (const auto& exporter : spec.exporters) {
    const std::filesystem::path dir = ExportFolder(estimator, *exporter);
    if (!FileExists(dir)) continue;
    std::vector<std::filesystem::path> abandoned;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (entry.path().filename().string().starts_with("temp-")) abandoned.push_back(entry.path());
    }
    for (const auto& path : abandoned) {
      LogInfo(kTaskLog, "Removing ", path.string(), ", which was not completed.");
      std::filesystem::remove_all(path);
    }
  }
}

// Stops an evaluation after SIGTERM. Evaluate then throws CancelledError and writes no results.
class StopEvaluationHook final : public train::SessionRunHook {
 public:
  void AfterRun(train::SessionRunContext& context, const train::SessionRunValues&) override {
    if (StopSignal::Received()) context.RequestStop();
  }
};

// Evaluates checkpoints, exports, and remembers the last results. While it exists, SIGTERM does not end the process.
class Evaluation {
 public:
  Evaluation(Estimator& estimator, const EvalSpec& spec) : estimator_(estimator), spec_(spec) {}

  // Evaluates and exports. Returns false if SIGTERM has come before all of it was done.
  bool Run(const std::string& checkpoint, bool is_final) {
    if (StopSignal::Received()) return false;
    std::vector<std::shared_ptr<train::SessionRunHook>> hooks = spec_.hooks;
    hooks.push_back(std::make_shared<StopEvaluationHook>());
    try {
      metrics_ = estimator_.Evaluate(
          spec_.input_fn, {.steps = spec_.steps, .hooks = hooks, .checkpoint_path = checkpoint, .name = spec_.name});
    } catch (const CancelledError& error) {
      if (!StopSignal::Received()) throw;
      LogInfo(kTaskLog, error.what());
      return false;
    }
    step_ = static_cast<int64_t>(metrics_.at("global_step"));
    at_ = SteadyClock::now();
    checkpoint_ = checkpoint;
    return Export(is_final);
  }
  // For a last checkpoint that was evaluated before it was known to be the last one. Returns false if SIGTERM has come
  // before the last exporter was called.
  bool Export(bool is_final) {
    std::vector<std::string> exports;
    for (const auto& exporter : spec_.exporters) {
      if (StopSignal::Received()) return false;
      const std::string path = ExportFolder(estimator_, *exporter);
      if (auto made = exporter->Export(estimator_, path, checkpoint_, metrics_, is_final)) exports.push_back(*made);
    }
    exports_ = std::move(exports);
    return true;
  }
  bool ThrottleIsOver() const { return !at_ || SteadyClock::now() >= *at_ + spec_.throttle; }

  int64_t step() const { return step_; }
  const std::string& checkpoint() const { return checkpoint_; }
  // Returns nullopt if SIGTERM has come before the end of the first evaluation.
  std::optional<TrainAndEvaluateResult> result() const {
    if (step_ < 0) return std::nullopt;
    return TrainAndEvaluateResult{metrics_, exports_};
  }

 private:
  const StopSignal stop_signal_{[] {}};
  Estimator& estimator_;
  const EvalSpec& spec_;
  EvalMetrics metrics_;
  std::vector<std::string> exports_;
  int64_t step_ = -1;
  std::string checkpoint_;
  std::optional<SteadyClock::time_point> at_;
};

// Evaluates after checkpoints of a local training: not after the first one, and not more often than the throttle says.
class EvaluateAfterSave final : public train::CheckpointSaverListener {
 public:
  EvaluateAfterSave(Evaluation& evaluation, const Estimator& estimator, const TrainSpec& train_spec,
                    std::chrono::milliseconds throttle)
      : evaluation_(evaluation), estimator_(estimator), train_spec_(train_spec), throttle_(throttle) {}

  bool AfterSave(Session&, int64_t step) override {
    if (std::exchange(first_, false) || StopSignal::Received()) return false;
    if (!evaluation_.ThrottleIsOver()) {
      LogInfo(kTaskLog, "Skip the current checkpoint eval due to throttle secs (", SecondsOf(throttle_), " secs).");
      return false;
    }
    evaluation_.Run(estimator_.latest_checkpoint(), IsLast(step));
    return false;
  }
  void End(Session&, int64_t step) override {
    if (StopSignal::Received()) {
      LogInfo(kTaskLog, "Got ", StopSignal::Name(), ": the training has stopped and saved step ", step,
              ". Nothing more is evaluated.");
    } else if (evaluation_.step() != step) {
      evaluation_.Run(estimator_.latest_checkpoint(), /*is_final=*/true);
    } else if (!IsLast(step)) {
      evaluation_.Export(/*is_final=*/true);
    }
  }

 private:
  bool IsLast(int64_t step) const { return train_spec_.max_steps && step >= *train_spec_.max_steps; }

  Evaluation& evaluation_;
  const Estimator& estimator_;
  const TrainSpec& train_spec_;
  const std::chrono::milliseconds throttle_;
  bool first_ = true;
};

TrainOptions OptionsOf(const TrainSpec& spec) {
  return {.hooks = spec.hooks, .max_steps = spec.max_steps, .saving_listeners = spec.saving_listeners};
}

std::optional<TrainAndEvaluateResult> RunLocal(Estimator& estimator, const TrainSpec& train_spec,
                                               const EvalSpec& eval_spec) {
  const RunConfig& config = estimator.config();
  const bool by_steps = config.save_checkpoints_steps.has_value();
  LogInfo(kTaskLog, "Running training and evaluation locally (non-distributed).");
  LogInfo(kTaskLog,
          "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint frequency is "
          "determined based on RunConfig arguments: save_checkpoints_steps ",
          by_steps ? StrCat(*config.save_checkpoints_steps) : "None", " or save_checkpoints_secs ",
          by_steps ? "None" : StrCat(SecondsOf(config.save_checkpoints_interval.value_or(std::chrono::seconds(600)))),
          ".");
  const std::shared_ptr<FileLock> lock = estimator.LockForTraining();
  // The evaluator of an earlier training may still export to the folder.
  const FileLock evaluator_lock(EvaluatorLockFile(estimator), "evaluator");
  RemoveAbandonedExports(estimator, eval_spec);
  Evaluation evaluation(estimator, eval_spec);
  TrainOptions options = OptionsOf(train_spec);
  options.saving_listeners.push_back(
      std::make_shared<EvaluateAfterSave>(evaluation, estimator, train_spec, eval_spec.throttle));
  estimator.Train(train_spec.input_fn, options);
  // If max_steps was saved before, there was no training. An earlier process may have died before it could evaluate.
  if (evaluation.step() < 0) evaluation.Run(estimator.latest_checkpoint(), /*is_final=*/true);
  return evaluation.result();
}

std::unique_ptr<Server> StartServer(const Estimator& estimator) {
  const TaskRole& role = estimator.role();
  ServerOptions options;
  options.config = estimator.config().session_config;
  return std::make_unique<Server>(role.cluster_spec, role.task_type, role.task_id, options);
}

// `what` says what is not done: "checkpoints are not evaluated yet".
void WarnWithoutEvaluator(const Estimator& estimator, const EvalSpec& eval_spec, const std::string& what) {
  if (FileLock::StateOf(EvaluatorLockFile(estimator)) != FileLock::State::kFree) return;
  LogWarning(kTaskLog, "no evaluator is running for ", estimator.model_dir(), ", so ", what,
             eval_spec.exporters.empty() ? "" : ", and nothing is exported",
             "; start one with {\"task\": {\"type\": \"evaluator\", \"index\": 0}} in TF_CONFIG");
}

// Waits for `delay`, or until `is_over` returns true.
void WaitForTurn(std::chrono::milliseconds delay, const std::function<bool()>& is_over) {
  const auto end = DeadlineAfter(delay);
  while (SteadyClock::now() < end && !is_over()) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(end - SteadyClock::now(), kLook));
  }
}

// Tells the evaluator which step is the final one, unless SIGTERM has ended the training before.
void AnnounceFinalStep(const Estimator& estimator, const TrainSpec& train_spec, const EvalSpec& eval_spec) {
  const std::string last = estimator.latest_checkpoint();
  if (last.empty()) return;
  const int64_t step = StepOfCheckpoint(last);
  if (StopSignal::Received() && step < train_spec.max_steps.value_or(INT64_MAX)) {
    LogInfo(kTaskLog, "Got ", StopSignal::Name(), ": the training has stopped at step ", step,
            ". Start its tasks again to go on.");
    return;
  }
  WriteFileAtomically(DoneFile(estimator), StrCat(step, " ", NewIncarnation(), "\n"));
  WarnWithoutEvaluator(estimator, eval_spec, StrCat("the final step ", step, " is not evaluated"));
}

void RunTrainer(Estimator& estimator, const TrainSpec& train_spec, const EvalSpec& eval_spec) {
  const TaskRole& role = estimator.role();
  if (!role.is_chief && role.num_ps_replicas == 0 && estimator.config().device_fn == nullptr) {
    throw InvalidArgumentError(
        StrCat("[estimator] expected ps in the cluster, or RunConfig::device_fn, so that the "
               "workers share the variables; got ",
               role.cluster_spec.ToString()));
  }
  // Until the final step is written, no second chief may touch the folder.
  const std::shared_ptr<FileLock> lock = role.is_chief ? estimator.LockForTraining() : nullptr;
  TrainOptions options = OptionsOf(train_spec);
  std::unique_ptr<Server> server;
  if (role.cluster_spec.total_tasks() > 1) {
    server = StartServer(estimator);
    options.server = server.get();
  }
  if (role.is_chief) {
    RemoveFile(DoneFile(estimator));
    WarnWithoutEvaluator(estimator, eval_spec, "checkpoints are not evaluated yet");
  } else {
    const auto longest = estimator.config().experimental_max_worker_delay.value_or(std::chrono::seconds(60));
    const auto delay = std::min<std::chrono::milliseconds>(longest, std::chrono::seconds(5) * (role.task_id + 1));
    if (delay.count() > 0) {
      LogInfo(kTaskLog, "Waiting ", SecondsOf(delay), " secs before starting training.");
      WaitForTurn(delay, [&] { return server != nullptr && server->training_done(); });
    }
  }
  if (server != nullptr && server->training_done()) {
    LogInfo(kTaskLog, "The chief has ended the training before this worker could take part.");
    return;
  }
  estimator.Train(train_spec.input_fn, options);
  if (role.is_chief) AnnounceFinalStep(estimator, train_spec, eval_spec);
}

void RunServer(const Estimator& estimator) {
  const std::unique_ptr<Server> server = StartServer(estimator);
  server->Join();
}

// How long an evaluator waits for a new checkpoint.
class CheckpointWait {
 public:
  explicit CheckpointWait(const Estimator& estimator) : estimator_(estimator) { Renew(); }

  void Renew() {
    deadline_ = DeadlineAfter(estimator_.config().session_creation_timeout);
    warn_at_ = SteadyClock::now() + kWarnAfter;
  }
  // Throws DeadlineExceededError if the wait since Renew was too long. Logs a warning now and then.
  void Check(const std::string& newest) {
    const auto now = SteadyClock::now();
    const std::string have = newest.empty() ? "none" : newest;
    if (now >= deadline_) {
      throw DeadlineExceededError(StrCat("[estimator] expected a new checkpoint in ", estimator_.model_dir(),
                                         " within ", SecondsOf(estimator_.config().session_creation_timeout),
                                         " s; the newest is ", have));
    }
    if (now < warn_at_) return;
    LogWarning(kTaskLog, "Estimator is not trained yet, or no new checkpoint was written: the newest in ",
               estimator_.model_dir(), " is ", have);
    warn_at_ = now + kWarnAfter;
  }

 private:
  static constexpr std::chrono::minutes kWarnAfter{10};
  const Estimator& estimator_;
  SteadyClock::time_point deadline_, warn_at_;
};

// Calls `work`, which reads a checkpoint. Returns false if it fails because the chief, which keeps only the newest
// checkpoints, has deleted this one meanwhile.
bool ReadWhileKept(const std::string& checkpoint, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (FileExists(checkpoint + ".index")) throw;
    LogWarning(kTaskLog, "the chief has deleted ", checkpoint, " while it was evaluated (", error.what(),
               "); a newer one will be evaluated. RunConfig::keep_checkpoint_max says how many it keeps");
    return false;
  }
}

std::optional<TrainAndEvaluateResult> RunEvaluator(Estimator& estimator, const TrainSpec& train_spec,
                                                   const EvalSpec& eval_spec) {
  const FileLock lock(EvaluatorLockFile(estimator), "evaluator");
  RemoveAbandonedExports(estimator, eval_spec);
  Evaluation evaluation(estimator, eval_spec);
  // If the end of an earlier training was evaluated, the chief of this training has not begun yet.
  std::string old_end = ReadIfThere(EvaluatedFile(estimator));
  if (eval_spec.start_delay.count() > 0) {
    LogInfo(kTaskLog, "Waiting ", SecondsOf(eval_spec.start_delay), " secs before starting eval.");
    WaitForTurn(eval_spec.start_delay, StopSignal::Received);
  }
  CheckpointWait wait(estimator);
  for (; !StopSignal::Received(); std::this_thread::sleep_for(kLook)) {
    // In this order: a chief that has ended has written its last checkpoint, then the end, and then freed its lock.
    // Without locks, max_steps alone says which checkpoint is the last one.
    const bool chief_is_gone = FileLock::StateOf(estimator.TrainingLockFile()) != FileLock::State::kHeld;
    const std::string end = ReadIfThere(DoneFile(estimator));
    if (end.empty()) old_end.clear();  // the chief has begun
    const int64_t final_step = end.empty() || end == old_end ? -1 : std::strtoll(end.c_str(), nullptr, 10);
    const auto is_last = [&](int64_t step) {
      return step >= 0 && (step == final_step || (chief_is_gone && step >= train_spec.max_steps.value_or(INT64_MAX)));
    };
    const std::string newest = estimator.latest_checkpoint();
    const bool is_new = !newest.empty() && newest != evaluation.checkpoint();
    if (!is_new && is_last(evaluation.step())) {
      if (!evaluation.Export(/*is_final=*/true)) break;
      WriteFileAtomically(EvaluatedFile(estimator), end);
      return evaluation.result();
    }
    bool ended = false;
    const bool read = !is_new || ReadWhileKept(newest, [&] {
      const bool last = is_last(StepOfCheckpoint(newest));
      if (last || evaluation.ThrottleIsOver()) ended = evaluation.Run(newest, last) && last;
    });
    if (ended) {
      WriteFileAtomically(EvaluatedFile(estimator), end);
      return evaluation.result();
    }
    if (is_new && read) wait.Renew();  // it was evaluated now, or will be when the throttle is over
    wait.Check(newest);
  }
  LogInfo(kTaskLog, "Got ", StopSignal::Name(), ": the evaluator ends. Start it again to evaluate newer checkpoints.");
  return evaluation.result();
}

}  // namespace

std::optional<TrainAndEvaluateResult> TrainAndEvaluate(Estimator& estimator, const TrainSpec& train_spec,
                                                       const EvalSpec& eval_spec) {
  const TaskRole& role = estimator.role();
  CheckSpecs(train_spec, eval_spec, role.task_type == "evaluator" || role.cluster_spec.empty());
  LogInfo(kTaskLog, "Not using Distribute Coordinator.");
  if (role.task_type == "evaluator") return RunEvaluator(estimator, train_spec, eval_spec);
  if (role.cluster_spec.empty()) return RunLocal(estimator, train_spec, eval_spec);
  if (role.task_type == "ps") {
    RunServer(estimator);
  } else if (role.is_chief || role.task_type == "worker") {
    RunTrainer(estimator, train_spec, eval_spec);
  } else {
    throw InvalidArgumentError(
        StrCat("[estimator] expected a task of the type chief, worker, ps or evaluator; got \"", role.task_type, "\""));
  }
  return std::nullopt;
}

}  // namespace cohort::estimator
