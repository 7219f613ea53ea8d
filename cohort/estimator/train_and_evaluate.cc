// TrainAndEvaluate for each role. The chief's last act is to write the file training_done, which has the final step.
// The evaluator is not in the cluster and reads only the folder.
#include "cohort/estimator/train_and_evaluate.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>
#include <utility>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/estimator/model_graph.h"

namespace cohort::estimator {
namespace {

constexpr const char* kTaskLog = "estimator";
constexpr std::chrono::milliseconds kLook{200};  // between two looks of an evaluator into the folder
using SteadyClock = std::chrono::steady_clock;

std::string DoneFile(const Estimator& estimator) { return estimator.model_dir() + "/training_done"; }

// Returns the final step that the chief has written, or -1.
int64_t FinalStep(const Estimator& estimator) {
  const std::string path = DoneFile(estimator);
  return FileExists(path) ? std::strtoll(ReadFile(path).c_str(), nullptr, 10) : -1;
}

double SecondsOf(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

void CheckSpecs(const TrainSpec& train_spec, const EvalSpec& eval_spec) {
  if (train_spec.input_fn == nullptr || eval_spec.input_fn == nullptr) {
    throw InvalidArgumentError("[estimator] expected an input function in TrainSpec and in EvalSpec; got none");
  }
  if (eval_spec.start_delay.count() < 0 || eval_spec.throttle.count() < 0) {
    throw InvalidArgumentError(StrCat("[estimator] expected start_delay and throttle of at least 0; got ",
                                      SecondsOf(eval_spec.start_delay), " s and ", SecondsOf(eval_spec.throttle),
                                      " s"));
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

// Evaluates checkpoints, exports, and remembers the last results.
class Evaluation {
 public:
  Evaluation(Estimator& estimator, const EvalSpec& spec) : estimator_(estimator), spec_(spec) {}

  void Run(const std::string& checkpoint, bool is_final) {
    metrics_ = estimator_.Evaluate(
        spec_.input_fn,
        {.steps = spec_.steps, .hooks = spec_.hooks, .checkpoint_path = checkpoint, .name = spec_.name});
    step_ = static_cast<int64_t>(metrics_.at("global_step"));
    at_ = SteadyClock::now();
    checkpoint_ = checkpoint;
    Export(is_final);
  }
  // For a last checkpoint that was evaluated before it was known to be the last one.
  void Export(bool is_final) {
    std::vector<std::string> exports;
    for (const auto& exporter : spec_.exporters) {
      const std::string path = StrCat(estimator_.model_dir(), "/export/", exporter->name());
      if (auto made = exporter->Export(estimator_, path, checkpoint_, metrics_, is_final)) exports.push_back(*made);
    }
    exports_ = std::move(exports);
  }
  bool ThrottleIsOver() const { return !at_ || SteadyClock::now() >= *at_ + spec_.throttle; }

  int64_t step() const { return step_; }
  const std::string& checkpoint() const { return checkpoint_; }
  TrainAndEvaluateResult result() const { return {metrics_, exports_}; }

 private:
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
    if (std::exchange(first_, false)) return false;
    if (!evaluation_.ThrottleIsOver()) {
      LogInfo(kTaskLog, "Skip the current checkpoint eval due to throttle secs (", SecondsOf(throttle_), " secs).");
      return false;
    }
    evaluation_.Run(estimator_.latest_checkpoint(), IsLast(step));
    return false;
  }
  void End(Session&, int64_t step) override {
    if (evaluation_.step() != step) {
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

TrainAndEvaluateResult RunLocal(Estimator& estimator, const TrainSpec& train_spec, const EvalSpec& eval_spec) {
  const RunConfig& config = estimator.config();
  const bool by_steps = config.save_checkpoints_steps.has_value();
  LogInfo(kTaskLog, "Running training and evaluation locally (non-distributed).");
  LogInfo(kTaskLog,
          "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint frequency is "
          "determined based on RunConfig arguments: save_checkpoints_steps ",
          by_steps ? StrCat(*config.save_checkpoints_steps) : "None", " or save_checkpoints_secs ",
          by_steps ? "None" : StrCat(SecondsOf(config.save_checkpoints_interval.value_or(std::chrono::seconds(600)))),
          ".");
  Evaluation evaluation(estimator, eval_spec);
  TrainOptions options = OptionsOf(train_spec);
  options.saving_listeners.push_back(
      std::make_shared<EvaluateAfterSave>(evaluation, estimator, train_spec, eval_spec.throttle));
  estimator.Train(train_spec.input_fn, options);
  return evaluation.result();
}

std::unique_ptr<Server> StartServer(const Estimator& estimator) {
  const TaskRole& role = estimator.role();
  ServerOptions options;
  options.config = estimator.config().session_config;
  return std::make_unique<Server>(role.cluster_spec, role.task_type, role.task_id, options);
}

void WarnWithoutEvaluator(const EvalSpec& eval_spec) {
  LogWarning(kTaskLog, "in a cluster only the task \"evaluator\" evaluates",
             eval_spec.exporters.empty() ? "" : " and exports",
             "; start one with {\"task\": {\"type\": \"evaluator\", \"index\": 0}} in TF_CONFIG if there is none");
}

// Waits for `delay`, or until the chief says that training is done.
void WaitForTurn(std::chrono::milliseconds delay, const Server* server) {
  const auto end = DeadlineAfter(delay);
  while (SteadyClock::now() < end && (server == nullptr || !server->training_done())) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(end - SteadyClock::now(), kLook));
  }
}

void RunTrainer(Estimator& estimator, const TrainSpec& train_spec, const EvalSpec& eval_spec) {
  const TaskRole& role = estimator.role();
  if (!role.is_chief && role.num_ps_replicas == 0 && estimator.config().device_fn == nullptr) {
    throw InvalidArgumentError(
        StrCat("[estimator] expected ps in the cluster, or RunConfig::device_fn, so that the "
               "workers share the variables; got ",
               role.cluster_spec.ToString()));
  }
  TrainOptions options = OptionsOf(train_spec);
  std::unique_ptr<Server> server;
  if (role.cluster_spec.total_tasks() > 1) {
    server = StartServer(estimator);
    options.server = server.get();
  }
  if (role.is_chief) {
    RemoveFile(DoneFile(estimator));
    WarnWithoutEvaluator(eval_spec);
  } else {
    const auto longest = estimator.config().experimental_max_worker_delay.value_or(std::chrono::seconds(60));
    const auto delay = std::min<std::chrono::milliseconds>(longest, std::chrono::seconds(5) * (role.task_id + 1));
    if (delay.count() > 0) {
      LogInfo(kTaskLog, "Waiting ", SecondsOf(delay), " secs before starting training.");
      WaitForTurn(delay, options.server);
    }
  }
  if (server != nullptr && server->training_done()) {
    LogInfo(kTaskLog, "The chief has ended the training before this worker could take part.");
    return;
  }
  estimator.Train(train_spec.input_fn, options);
  if (role.is_chief) {
    const std::string last = estimator.latest_checkpoint();
    if (!last.empty()) WriteFileAtomically(DoneFile(estimator), StrCat(StepOfCheckpoint(last), "\n"));
  }
}

void RunServer(const Estimator& estimator) {
  const std::unique_ptr<Server> server = StartServer(estimator);
  server->Join();
}

TrainAndEvaluateResult RunEvaluator(Estimator& estimator, const TrainSpec& train_spec, const EvalSpec& eval_spec) {
  // The file of an earlier training in this folder, which the chief has not removed yet, does not count.
  int64_t old_step = FinalStep(estimator);
  if (old_step >= train_spec.max_steps.value_or(-1)) old_step = -1;
  if (eval_spec.start_delay.count() > 0) {
    LogInfo(kTaskLog, "Waiting ", SecondsOf(eval_spec.start_delay), " secs before starting eval.");
    std::this_thread::sleep_for(eval_spec.start_delay);
  }
  Evaluation evaluation(estimator, eval_spec);
  const auto patience = estimator.config().session_creation_timeout;
  auto deadline = DeadlineAfter(patience);
  auto warn_at = SteadyClock::now() + std::chrono::minutes(10);
  for (;;) {
    // The final step is read first: the checkpoint of this step is there when the chief writes it.
    int64_t final_step = FinalStep(estimator);
    if (final_step < 0) old_step = -1;  // the chief has begun
    if (old_step >= 0 && final_step == old_step) final_step = -1;
    const std::string newest = estimator.latest_checkpoint();
    const bool is_new = !newest.empty() && newest != evaluation.checkpoint();
    if (is_new && (evaluation.ThrottleIsOver() || final_step >= 0)) {
      const int64_t step = StepOfCheckpoint(newest);
      const bool is_last = step == final_step || step >= train_spec.max_steps.value_or(INT64_MAX);
      evaluation.Run(newest, is_last);
      if (is_last) return evaluation.result();
    } else if (!is_new && evaluation.step() >= 0 && evaluation.step() == final_step) {
      evaluation.Export(/*is_final=*/true);
      return evaluation.result();
    }
    if (is_new) {  // it was evaluated now, or will be when the throttle is over
      deadline = DeadlineAfter(patience);
      warn_at = SteadyClock::now() + std::chrono::minutes(10);
    }
    const auto now = SteadyClock::now();
    if (now >= deadline) {
      throw DeadlineExceededError(StrCat("[estimator] expected a new checkpoint in ", estimator.model_dir(), " within ",
                                         SecondsOf(patience), " s; the newest is ", newest.empty() ? "none" : newest));
    }
    if (now >= warn_at) {
      LogWarning(kTaskLog, "Estimator is not trained yet, or no new checkpoint was written: the newest in ",
                 estimator.model_dir(), " is ", newest.empty() ? "none" : newest);
      warn_at = now + std::chrono::minutes(10);
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

std::optional<TrainAndEvaluateResult> TrainAndEvaluate(Estimator& estimator, const TrainSpec& train_spec,
                                                       const EvalSpec& eval_spec) {
  CheckSpecs(train_spec, eval_spec);
  LogInfo(kTaskLog, "Not using Distribute Coordinator.");
  const TaskRole& role = estimator.role();
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
