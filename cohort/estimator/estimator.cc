// Estimator. Each call builds a graph (Build): global step, an iterator over the data, and the model. Train runs it in
// a MonitoredTrainingSession. Evaluate and Predict restore a checkpoint into a session of this process.
#include "cohort/estimator/estimator.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/graph_iterator.h"
#include "cohort/estimator/model_graph.h"
#include "cohort/summary/summary.h"
#include "cohort/train/device_setter.h"
#include "cohort/train/hooks/hook_values.h"
#include "cohort/train/monitored_session.h"

namespace cohort::estimator {
namespace {

constexpr const char* kLog = "estimator";
using Hooks = std::vector<std::shared_ptr<train::SessionRunHook>>;

RunConfig WithFolder(RunConfig config) {
  CheckRunConfig(config);
  if (!config.model_dir.empty()) {
    CreateDirectories(config.model_dir);
    return config;
  }
  const char* base = std::getenv("TMPDIR");
  std::string name = StrCat(base == nullptr || *base == '\0' ? "/tmp" : base, "/tmpXXXXXX");
  if (mkdtemp(name.data()) == nullptr) ThrowErrno(errno, StrCat("[estimator] cannot make a folder ", name));
  config.model_dir = name;
  LogWarning(kLog, "Using temporary folder as model directory: ", config.model_dir);
  return config;
}

RunConfig DefaultConfig() {
  LogInfo(kLog, "Using default config.");
  return {};
}

// Opens sessions of this process that hold the values of one checkpoint.
class RestoringCreator final : public train::SessionCreator {
 public:
  RestoringCreator(Graph& graph, train::SessionCreatorOptions options, std::string checkpoint)
      : SessionCreator(graph, std::move(options)), checkpoint_(std::move(checkpoint)) {}
  std::unique_ptr<Session> CreateSession(const Graph& graph, train::Coordinator& coordinator) override {
    auto session = std::make_unique<Session>(graph, "", options().config);
    if (checkpoint_.empty()) {
      session->Run(scaffold().init_feed(), {}, {scaffold().init_op()});
    } else if (scaffold().saver() != nullptr) {
      scaffold().saver()->Restore(*session, checkpoint_);
    }
    train::SessionManager(graph, scaffold(), coordinator)
        .RunLocalInit(*session, checkpoint_.empty() ? "init_op" : "restoring " + checkpoint_);
    return session;
  }
  bool is_chief() const override { return true; }

 private:
  const std::string checkpoint_;
};

std::string TimeText(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[40];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

std::string Fixed(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.5f", seconds);
  return text;
}

std::map<std::string, Output> NamedFeatures(const std::vector<Output>& features,
                                            const std::vector<std::string>& names) {
  std::map<std::string, Output> named;
  if (names.empty()) return named;
  for (size_t i = 0; i < names.size() && i < features.size(); ++i) named.emplace(names[i], features[i]);
  if (names.size() == features.size() && named.size() == names.size()) return named;
  throw InvalidArgumentError(StrCat("[estimator] expected one name of its own for each of ", features.size(),
                                    " features; got [", StrJoin(names, ", "), "]"));
}

}  // namespace

Output ModelFnArgs::feature(const std::string& name) const {
  const auto found = named_features.find(name);
  if (found != named_features.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, output] : named_features) names.push_back(known);
  throw NotFoundError(
      StrCat("[estimator] expected a feature '", name, "'; the input has [", StrJoin(names, ", "), "]"));
}

std::string ToString(ModeKeys mode) {
  switch (mode) {
    case ModeKeys::kTrain: return "train";
    case ModeKeys::kEval: return "eval";
    case ModeKeys::kPredict: break;
  }
  return "infer";
}

Estimator::Estimator(ModelFn model_fn) : Estimator(std::move(model_fn), DefaultConfig()) {}

Estimator::Estimator(ModelFn model_fn, const RunConfig& config, std::optional<train::WarmStartSettings> warm_start_from)
    : model_fn_(std::move(model_fn)),
      config_(WithFolder(config)),
      role_(RoleOf(config_)),
      warm_start_from_(std::move(warm_start_from)) {
  if (model_fn_ == nullptr) throw InvalidArgumentError("[estimator] expected a model function; got none");
  LogInfo(kLog, "Using config: ", ToString(config_, role_));
}

std::string Estimator::latest_checkpoint() const { return LatestCheckpoint(config_.model_dir); }

std::string Estimator::TrainedCheckpoint() const {
  return NewestUsableCheckpoint(config_.model_dir, kCheckpointStateFile, CheckCheckpointComplete);
}

std::shared_ptr<FileLock> Estimator::LockForTraining() {
  std::shared_ptr<FileLock> lock = training_lock_.lock();
  if (lock == nullptr) {
    lock = std::make_shared<FileLock>(TrainingLockFile(), "chief");
    training_lock_ = lock;
  }
  return lock;
}

std::vector<std::string> Estimator::GetVariableNames() const {
  const std::string checkpoint = latest_checkpoint();
  if (checkpoint.empty())
    throw NotFoundError(StrCat("[estimator] expected a checkpoint in ", model_dir(), "; got none"));
  const BundleReader reader(checkpoint);
  std::vector<std::string> names;
  for (const auto& [name, entry] : reader.tensors()) names.push_back(name);
  return names;
}

Tensor Estimator::GetVariableValue(const std::string& name) const {
  const std::string checkpoint = latest_checkpoint();
  if (checkpoint.empty())
    throw NotFoundError(StrCat("[estimator] expected a checkpoint in ", model_dir(), "; got none"));
  return BundleReader(checkpoint).Read(name);
}

void Estimator::Build(ModelGraph& model, const InputFn& input_fn, ModeKeys mode, bool in_cluster) const {
  if (config_.tf_random_seed) model.graph.set_seed(*config_.tf_random_seed);
  DeviceFunction device = config_.device_fn;
  if (device == nullptr && in_cluster && role_.num_ps_replicas > 0) {
    device = train::ReplicaDeviceSetter(
        {.worker_device = StrCat("/job:", role_.task_type, "/task:", role_.task_id), .cluster = role_.cluster_spec});
  }
  const DeviceScope scope(model.graph, device);
  model.global_step = ops::GetOrCreateGlobalStep(model.graph);
  const Input input = input_fn();
  model.endless = input.dataset.Cardinality() == data::kInfiniteCardinality;
  std::vector<Output> features = data::MakeGraphIterator(model.graph, input.dataset).GetNext();
  std::vector<Output> labels;
  const size_t named = input.feature_names.size();
  const bool has_labels = named == 0 ? mode != ModeKeys::kPredict && features.size() > 1 : features.size() == named + 1;
  if (has_labels) {
    if (mode != ModeKeys::kPredict) labels.push_back(features.back());
    features.pop_back();
  }
  LogInfo(kLog, "Calling model_fn.");
  model.spec = model_fn_({model.graph, features, labels, mode, config_, NamedFeatures(features, input.feature_names)});
  LogInfo(kLog, "Done calling model_fn.");
  CheckSpec(model.spec, mode);
  // The chief gives the variables their first values; a folder with a checkpoint has later ones.
  if (mode == ModeKeys::kTrain && warm_start_from_ && role_.is_chief && latest_checkpoint().empty()) {
    train::WarmStart(model.graph, *warm_start_from_);
  }
  if (mode == ModeKeys::kEval) model.AddMeanLoss();
  model.MakeScaffold(config_);
}

void Estimator::Train(const InputFn& input_fn, const TrainOptions& options) {
  if (options.steps && options.max_steps) {
    throw InvalidArgumentError("[estimator] Can not provide both steps and max_steps.");
  }
  for (const auto& [name, value] : {std::pair("steps", options.steps), std::pair("max_steps", options.max_steps)}) {
    if (value && *value <= 0) {
      throw InvalidArgumentError(StrCat("[estimator] expected ", name, " above 0; got ", *value));
    }
  }
  const std::shared_ptr<FileLock> lock = role_.is_chief ? LockForTraining() : nullptr;
  if (options.max_steps) {
    const std::string newest = latest_checkpoint();
    if (!newest.empty() && StepOfCheckpoint(newest) >= *options.max_steps) {
      LogInfo(kLog, "Skipping training since max_steps has already saved.");
      if (role_.is_chief && options.server != nullptr) options.server->AnnounceDone();
      return;
    }
  }
  ModelGraph model;
  Build(model, input_fn, ModeKeys::kTrain, options.server != nullptr);
  try {
    RunTraining(model, options);
  } catch (const OutOfRangeError& end) {
    LogInfo(kLog, end.what());  // the chief was done before this worker's session was ready
  }
}

Hooks Estimator::TrainingHooks(const ModelGraph& model, const TrainOptions& options) const {
  Hooks hooks = options.hooks;
  hooks.push_back(std::make_shared<train::NanTensorHook>(model.spec.loss));
  if (config_.log_step_count_steps > 0) {
    hooks.push_back(std::make_shared<train::LoggingTensorHook>(
        train::LoggingTensorHook::Values{{"loss", model.spec.loss}, {"step", model.global_step.value()}},
        train::LoggingTensorHook::Options{.every = {.steps = config_.log_step_count_steps}}));
  }
  hooks.insert(hooks.end(), model.spec.training_hooks.begin(), model.spec.training_hooks.end());
  if (options.steps || options.max_steps) {
    hooks.push_back(std::make_shared<train::StopAtStepHook>(
        train::StopAtStepHook::Options{.num_steps = options.steps, .last_step = options.max_steps}));
  }
  return hooks;
}

std::shared_ptr<train::SessionRunHook> Estimator::SaverHook(const ModelGraph& model,
                                                            const TrainOptions& options) const {
  train::Every every{.steps = config_.save_checkpoints_steps, .interval = config_.save_checkpoints_interval};
  if (!every.steps && !every.interval) every.interval = std::chrono::minutes(10);
  if (every.steps.value_or(1) == 0 || every.interval.value_or(std::chrono::hours(1)).count() == 0) {
    every = {.interval = kLongestLimit};  // only at the beginning and at the end
  }
  return std::make_shared<train::CheckpointSaverHook>(
      train::CheckpointSaverHook::Options{.checkpoint_dir = config_.model_dir,
                                          .every = every,
                                          .scaffold = model.scaffold,
                                          .listeners = options.saving_listeners,
                                          .save_graph_def = config_.checkpoint_save_graph_def});
}

void Estimator::RunTraining(ModelGraph& model, const TrainOptions& options) {
  Hooks chief_hooks = model.spec.training_chief_hooks;
  if (role_.is_chief) chief_hooks.push_back(SaverHook(model, options));
  train::MonitoredSession session =
      train::MonitoredTrainingSession(model.graph, {.master = options.server != nullptr ? options.server->Target() : "",
                                                    .is_chief = role_.is_chief,
                                                    .checkpoint_dir = config_.model_dir,
                                                    .scaffold = model.scaffold,
                                                    .hooks = TrainingHooks(model, options),
                                                    .chief_only_hooks = chief_hooks,
                                                    .save_checkpoint_steps = 0,  // SaverHook saves them
                                                    .save_summaries_steps = config_.save_summary_steps,
                                                    .config = config_.session_config,
                                                    .log_step_count_steps = config_.log_step_count_steps,
                                                    .max_wait = config_.session_creation_timeout,
                                                    .save_input_positions = false,  // each Train begins its input anew
                                                    .server = options.server});
  Tensor loss;
  session.RunUntilStop([&](train::MonitoredSession& running) {
    loss = running.Run({}, {model.spec.loss}, {model.spec.train_op}).front();
  });
  LogInfo(kLog, "Loss for final step: ", loss.defined() ? train::ValueText(loss) : "None", ".");
}

std::unique_ptr<train::MonitoredSession> Estimator::OpenRestored(ModelGraph& model, const std::string& checkpoint,
                                                                 Hooks hooks) const {
  train::SessionCreatorOptions creator{.scaffold = model.scaffold, .config = config_.session_config};
  return std::make_unique<train::MonitoredSession>(
      model.graph, std::make_unique<RestoringCreator>(model.graph, std::move(creator), checkpoint),
      train::MonitoredSessionOptions{.hooks = std::move(hooks), .recover = false, .writes = true});
}

EvalMetrics Estimator::Evaluate(const InputFn& input_fn, const EvaluateOptions& options) {
  if (options.steps && *options.steps <= 0) {
    throw InvalidArgumentError(StrCat("[estimator] expected steps above 0; got ", *options.steps));
  }
  const std::string checkpoint = options.checkpoint_path.empty() ? TrainedCheckpoint() : options.checkpoint_path;
  if (checkpoint.empty()) {
    LogInfo(kLog, "Could not find trained model in model_dir: ", model_dir(), ", running initialization to evaluate.");
  }
  ModelGraph model;
  Build(model, input_fn, ModeKeys::kEval, /*in_cluster=*/false);
  if (model.endless && !options.steps) {
    throw InvalidArgumentError(
        "[estimator] expected a number of steps, because the evaluation's data is endless (Repeat); got none");
  }
  Hooks hooks = options.hooks;
  hooks.insert(hooks.end(), model.spec.evaluation_hooks.begin(), model.spec.evaluation_hooks.end());
  LogInfo(kLog, "Starting evaluation at ", TimeText("%Y-%m-%dT%H:%M:%S"));
  const auto start = std::chrono::steady_clock::now();
  const auto final_values = std::make_shared<train::FinalOpsHook>(model.MetricValues());
  hooks.push_back(final_values);
  const auto session = OpenRestored(model, checkpoint, std::move(hooks));
  model.RunMetrics(*session, options.steps);
  session->Close();
  EvalMetrics results = model.MetricsOf(final_values->final_ops_values());
  LogInfo(kLog,
          "Inference Time : ", Fixed(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()),
          "s");
  LogInfo(kLog, "Finished evaluation at ", TimeText("%Y-%m-%d-%H:%M:%S"));
  WriteEvalSummary(options.name, results, checkpoint);
  return results;
}

void Estimator::WriteEvalSummary(const std::string& name, const EvalMetrics& metrics,
                                 const std::string& checkpoint) const {
  const auto step = static_cast<int64_t>(metrics.at("global_step"));
  std::vector<std::string> parts;
  EventWriter writer(StrCat(model_dir(), "/eval", name.empty() ? "" : "_" + name));
  for (const auto& [key, value] : metrics) {
    parts.push_back(StrCat(key, " = ", key == "global_step" ? StrCat(step) : ShortestText(static_cast<float>(value))));
    if (key != "global_step") writer.Scalar(key, static_cast<float>(value), step);
  }
  writer.Close();
  LogInfo(kLog, "Saving dict for global step ", step, ": ", StrJoin(parts, ", "));
  if (!checkpoint.empty()) {
    LogInfo(kLog, "Saving 'checkpoint_path' summary for global step ", step, ": ", checkpoint);
  }
}

std::vector<Prediction> Estimator::Predict(const InputFn& input_fn, const PredictOptions& options) {
  const std::string checkpoint = options.checkpoint_path.empty() ? TrainedCheckpoint() : options.checkpoint_path;
  if (checkpoint.empty()) {
    LogInfo(kLog, "Could not find trained model in model_dir: ", model_dir(), ", running initialization to predict.");
  }
  ModelGraph model;
  Build(model, input_fn, ModeKeys::kPredict, /*in_cluster=*/false);
  if (model.endless) {
    throw InvalidArgumentError("[estimator] expected data that ends; the data of the prediction is endless (Repeat)");
  }
  Hooks hooks = options.hooks;
  hooks.insert(hooks.end(), model.spec.prediction_hooks.begin(), model.spec.prediction_hooks.end());
  const auto session = OpenRestored(model, checkpoint, std::move(hooks));
  std::vector<Output> fetches;
  for (const auto& [name, value] : model.spec.predictions) fetches.push_back(value);
  std::vector<Prediction> all;
  session->RunUntilStop(
      [&](train::MonitoredSession& running) { AddExamples(model.spec.predictions, running.Run({}, fetches), all); });
  return all;
}

}  // namespace cohort::estimator
