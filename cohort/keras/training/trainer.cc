// Fit, Evaluate and Predict. FitHere prepares the data and the model, lets the processes compare what they train
// (ExpectAgreement), restores a backup if a callback asks for it, and runs the epochs (RunEpochs). Each epoch is one
// pass over the data (fit_loop.h), followed by the validation. If a call fails in one process, WithOthers announces the
// failure to the others.
#include "cohort/keras/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/stop_signal.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/keras/callbacks/progress_bar.h"
#include "cohort/keras/training/agreement.h"

namespace cohort::keras {
namespace {

// The number of examples that the signal check uses.
constexpr int64_t kSignalExamples = 64;

std::vector<Tensor> FirstExamples(const std::vector<Tensor>& batch, int64_t most) {
  std::vector<Tensor> first;
  first.reserve(batch.size());
  for (const Tensor& tensor : batch) first.push_back(tensor.Slice(0, std::min(most, tensor.shape().dim(0))));
  return first;
}

// Returns the data for training and for validation. The last `share` of the examples is for validation.
std::pair<ModelData, ModelData> SplitOff(const ModelData& data, double share) {
  if (!(share > 0 && share < 1)) {
    throw InvalidArgumentError(StrCat("[keras/fit] expected validation_split in (0, 1); got ", share));
  }
  if (data.dataset()) {
    throw InvalidArgumentError(
        "[keras/fit] expected tensors with validation_split; got a dataset: give it as "
        "validation_data");
  }
  const int64_t n = data.x().empty() || !data.x()[0].defined() ? 0 : data.x()[0].shape().dim(0);
  const auto split = static_cast<int64_t>(static_cast<double>(n) * (1.0 - share));
  if (split == 0 || split == n) {
    throw InvalidArgumentError(
        StrCat("[keras/fit] expected a validation_split that leaves examples on both sides; got ", share, " of ", n,
               " examples"));
  }
  const auto part = [&](int64_t begin, int64_t end) {
    const auto cut = [&](const std::vector<Tensor>& tensors) {
      std::vector<Tensor> slices;
      slices.reserve(tensors.size());
      for (const Tensor& tensor : tensors) slices.push_back(tensor.Slice(begin, end));
      return slices;
    };
    const Tensor& weight = data.sample_weight();
    return ModelData(cut(data.x()), cut(data.y()), weight.defined() ? weight.Slice(begin, end) : Tensor());
  };
  return {part(0, split), part(split, n)};
}

Logs WithPrefix(const Logs& logs) {
  Logs prefixed;
  prefixed.reserve(logs.size());
  for (const auto& [name, value] : logs) prefixed.emplace_back("val_" + name, value);
  return prefixed;
}

// While it lives, `*place` is `value`; then it is null.
template <typename T>
class PointsTo {
 public:
  PointsTo(T** place, T* value) : place_(place) { *place = value; }
  ~PointsTo() { *place_ = nullptr; }
  PointsTo(const PointsTo&) = delete;
  PointsTo& operator=(const PointsTo&) = delete;

 private:
  T** const place_;
};

Tensor Joined(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.shape().dim(0);
  Shape shape = parts[0].shape();
  shape.set_dim(0, rows);
  Tensor joined(parts[0].dtype(), shape);
  auto* to = static_cast<char*>(joined.raw_data());
  for (const Tensor& part : parts) {
    std::memcpy(to, part.raw_data(), part.bytes());
    to += part.bytes();
  }
  return joined;
}

// Returns work(). If it throws, the other processes, which do the same, get the error.
template <typename Work>
auto WithOthers(const distribute::StrategyPtr& strategy, const Work& work) {
  try {
    return work();
  } catch (const distribute::WorkersDisagreeError&) {
    throw;
  } catch (...) {
    if (strategy != nullptr) strategy->Fail(Status::FromCurrentException());
    throw;
  }
}

}  // namespace

void Trainer::ReportSignal(Batches& batches, const StepFunction& step, const std::string& where) {
  signal_checked_ = true;
  const std::vector<Tensor> examples = FirstExamples(batches.Peek(), kSignalExamples);
  const SignalReport report = WithPlace(where, 0, [&] { return engine().MeasureSignal(step, examples); });
  if (!is_chief()) return;
  for (const std::string& problem : report.Problems()) {
    LogWarning("keras", "signal check of model '", state_->name(), "': ", problem);
  }
}

void Trainer::ExpectAgreement(Batches& batches, Batches* validation, const FitOptions& options) {
  const distribute::Strategy& strategy = engine().strategy();
  if (strategy.num_workers() == 1) return;
  Facts facts;
  facts.emplace_back("dtype_policy", state_->options().dtype_policy);
  AddLayers(state_->layers(), facts);
  AddCompiled(*state_->compiled(), facts);
  facts.emplace_back("batch_size", StrCat(options.batch_size));
  facts.emplace_back("epochs", StrCat(options.initial_epoch, " to ", options.epochs));
  facts.emplace_back("steps_per_epoch", StrCat(options.steps_per_epoch));
  facts.emplace_back("replica_check_steps", StrCat(options.replica_check_steps));
  facts.emplace_back("signal_check", StrCat(options.signal_check && !signal_checked_));
  for (const auto& [label, weight] : options.class_weight) {
    facts.emplace_back(StrCat("weight of class ", label), StrCat(weight));
  }
  AddData("data", batches.common_data(), options.auto_shard, facts);
  facts.emplace_back("validates", validation == nullptr ? "no" : "yes");
  if (validation != nullptr) AddData("validation_data", validation->common_data(), options.auto_shard, facts);
  facts.emplace_back("validation_freq", StrCat(options.validation_freq));
  facts.emplace_back("validation_steps", StrCat(options.validation_steps));
  AddCallbacks(options.callbacks, facts);
  strategy.meeting().ExpectAgreement(
      StrCat("[keras/fit] expected all workers to call Fit together and to train model '", state_->name(), "' alike"),
      facts);
  batches.ShareSeeds();
  if (validation != nullptr) validation->ShareSeeds();
}

History Trainer::Fit(const ModelData& data, const FitOptions& options) {
  return WithOthers(state_->options().strategy, [&] { return FitHere(data, options); });
}

Batches Trainer::TrainingBatches(const ModelData& data, const FitOptions& options, int64_t first_pass) const {
  return Batches(data, state_->TrainedTargets(),
                 {.caller = "fit",
                  .batch_size = options.batch_size,
                  .shuffle = options.shuffle,
                  .seed = options.seed,
                  .first_pass = first_pass,
                  .steps_per_epoch = options.steps_per_epoch,
                  .class_weight = options.class_weight,
                  .strategy = &engine().strategy(),
                  .auto_shard = options.auto_shard});
}

std::unique_ptr<Batches> Trainer::ValidationBatches(const ModelData& data, const FitOptions& options) const {
  if (data.empty()) return nullptr;
  const int64_t size = options.validation_batch_size > 0 ? options.validation_batch_size : options.batch_size;
  return std::make_unique<Batches>(data, state_->TrainedTargets(),
                                   BatchOptions{.caller = "fit (validation)",
                                                .batch_size = size,
                                                .steps_per_epoch = options.validation_steps,
                                                .starts_over = true,
                                                .strategy = &engine().strategy(),
                                                .auto_shard = options.auto_shard});
}

int Trainer::VerboseOf(int verbose, const char* caller) const {
  if (verbose == kVerboseAuto && !is_chief()) return 0;
  if (verbose == kVerboseAuto) return is_remote() ? 2 : 1;
  if (verbose == 1 && is_remote()) {
    throw InvalidArgumentError(StrCat("[keras/", caller,
                                      "] `verbose=1` is not allowed with `ParameterServerStrategy` for performance ",
                                      "reasons. Received: verbose=1; use 0, 2 or kVerboseAuto"));
  }
  if (verbose < 0 || verbose > 2) {
    throw InvalidArgumentError(
        StrCat("[keras/", caller, "] expected verbose of 0, 1, 2 or kVerboseAuto; got ", verbose));
  }
  return verbose;
}

void Trainer::CheckRemote(const char* caller, const std::vector<CallbackPtr>& callbacks, int64_t steps,
                          const char* name_of_steps) const {
  if (!is_remote()) return;
  if (steps <= 0) {
    throw InvalidArgumentError(
        StrCat("[keras/", caller, "] `", name_of_steps, "` must be specified with `ParameterServerStrategy`."));
  }
  std::vector<std::string> unsupported;
  for (const CallbackPtr& callback : callbacks) {
    if (const auto name = callback->needs_batches()) unsupported.push_back(*name);
  }
  if (unsupported.empty()) return;
  throw InvalidArgumentError(StrCat("[keras/", caller, "] Batch-level `Callback`s are not supported with ",
                                    "`ParameterServerStrategy`. Found unsupported callbacks: [",
                                    StrJoin(unsupported, ", "), "]"));
}

std::vector<CallbackPtr> Trainer::CallbacksOf(const std::vector<CallbackPtr>& given, int verbose) const {
  std::vector<CallbackPtr> list = given;
  std::stable_partition(list.begin(), list.end(), [](const CallbackPtr& one) { return !one->comes_last(); });
  if (verbose > 0) list.push_back(std::make_shared<ProgressBarLogger>());
  return list;
}

History Trainer::FitHere(const ModelData& all, const FitOptions& options) {
  Prepare(all, "fit");
  ModelData data = all;
  ModelData validation_data = options.validation_data;
  if (options.validation_split != 0 && validation_data.empty()) {
    std::tie(data, validation_data) = SplitOff(all, options.validation_split);
  }
  const int verbose = VerboseOf(options.verbose, "fit");
  CheckRemote("fit", options.callbacks, options.steps_per_epoch, "steps_per_epoch");
  if (!validation_data.empty()) CheckRemote("fit", {}, options.validation_steps, "validation_steps");
  const size_t targets = state_->TrainedTargets().targets;
  if (!options.class_weight.empty() && targets != 1) {
    throw InvalidArgumentError(
        StrCat("[keras/fit] expected a model with one target for class_weight; it has ", targets));
  }
  const int64_t first_pass = options.initial_epoch > 0 ? options.initial_epoch : epochs_fitted_;
  Batches batches = TrainingBatches(data, options, first_pass);
  const std::unique_ptr<Batches> validation = ValidationBatches(validation_data, options);
  ExpectAgreement(batches, validation.get(), options);
  const StepFunction& step = state_->Step(/*training=*/true, batches.y_specs(), batches.of_workers());
  PutWeightsBack();
  engine().ExpectEqualReplicas();
  if (options.signal_check && !signal_checked_ && !is_remote()) {
    ReportSignal(batches, step, StrCat("epoch ", options.initial_epoch + 1));
  }
  History history;
  std::vector<CallbackPtr> list = CallbacksOf(options.callbacks, verbose);
  list.push_back(std::make_shared<HistoryCallback>(&history));
  CallbackList callbacks(std::move(list));
  callbacks.AttachAll(
      this,
      {.verbose = verbose, .epochs = options.epochs, .initial_epoch = options.initial_epoch, .steps = batches.steps()});
  stop_training_ = false;
  got_sigterm_ = false;
  stop_agreed_ = false;
  const StopSignal signal([this] { got_sigterm_ = true; });
  FitProgress progress = {batches, callbacks, RunningLosses(step), first_pass, options.initial_epoch};
  const PointsTo in_fit(&fit_, &progress);
  callbacks.OnTrainBegin();
  engine().ForgetEarlierTraining(progress.number);
  if (progress.restored_states) callbacks.RestoreStates(*progress.restored_states, progress.restored_from);
  const Logs logs = RunEpochs(step, validation.get(), options, progress, history);
  engine().ExpectEqualReplicas();
  // SIGTERM may come at any time, also when all epochs are done.
  if (interrupted() && progress.epoch < options.epochs) {
    PutWeightsBack();
    callbacks.OnTrainInterrupted();
    history.SetInterrupted();
    LogWarning("keras", StopSignal::Name(), " has interrupted the training of model '", state_->name(), "' in epoch ",
               progress.epoch + 1, ", after ", progress.batch,
               " batches of it; with the callback BackupAndRestore, the ", "next Fit goes on from there");
  } else {
    TakeAverages();
    engine().ForgetEarlierTraining(0);  // what the next call of Fit does is another training
  }
  callbacks.OnTrainEnd(logs);
  engine().strategy().meeting().Barrier();
  return history;
}

Logs Trainer::RunEpochs(const StepFunction& step, Batches* validation, const FitOptions& options, FitProgress& progress,
                        History& history) {
  Batches& batches = progress.batches;
  CallbackList& callbacks = progress.callbacks;
  int64_t unchecked = 0;
  const auto check_replicas = [&] {
    if (options.replica_check_steps == 0 || ++unchecked < options.replica_check_steps) return;
    unchecked = 0;
    engine().ExpectEqualReplicas();
  };
  Logs logs;
  std::chrono::nanoseconds waited{0};
  while (progress.epoch < options.epochs && !stop_training_ && !interrupted()) {
    const int epoch = progress.epoch;
    PutWeightsBack();
    callbacks.OnEpochBegin(epoch);
    if (progress.batch == 0) batches.StartEpoch();
    const std::string where = StrCat("epoch ", epoch + 1);
    const auto stop = [this] { return stop_training_ || interrupted(); };
    logs = RunPass(step, batches,
                   {&callbacks, /*testing=*/false, where, stop, &got_sigterm_, &stop_agreed_, check_replicas},
                   progress.running, &progress.batch);
    if (interrupted()) break;
    history.AddDataWait(batches.waited() - waited);
    waited = batches.waited();
    epochs_fitted_ = progress.first_pass + epoch - options.initial_epoch + 1;
    if (batches.steps() > 0) callbacks.SetStepsOfAll(batches.steps());
    if (validation != nullptr && (epoch + 1) % std::max(1, options.validation_freq) == 0) {
      const Logs tested =
          WithPrefix(RunTest(*validation, callbacks, "validation of " + where, [this] { return interrupted(); }));
      if (interrupted()) break;
      logs.insert(logs.end(), tested.begin(), tested.end());
    }
    progress.epoch = epoch + 1;
    progress.batch = 0;
    callbacks.OnEpochEnd(epoch, logs);
  }
  return logs;
}

void Trainer::TakeAverages() {
  if (!engine().optimizer()->uses_ema() || engine().Iterations() == 0) return;
  // If the averages are in the model, the weights are in their place, and get their values.
  ChangeAverages(state_->averages_in_model() ? AveragesChange::kFollowWeights : AveragesChange::kOverwriteWeights);
  state_->SetAveragesInModel(false);
}

Logs Trainer::RunTest(Batches& batches, Callback& callbacks, const std::string& where,
                      const std::function<bool()>& stop) {
  const PointsTo<const Batches> in_test(&tested_, &batches);
  callbacks.OnTestBegin();
  const StepFunction& step = state_->Step(/*training=*/false, batches.y_specs(), batches.of_workers());
  batches.StartEpoch();
  int64_t steps = 0;
  RunningLosses running(step);
  Logs logs = RunPass(step, batches, {&callbacks, /*testing=*/true, where, stop}, running, &steps);
  if (!stop()) callbacks.OnTestEnd(logs);
  return logs;
}

Logs Trainer::Evaluate(const ModelData& data, const EvaluateOptions& options) {
  return WithOthers(state_->options().strategy, [&] { return EvaluateHere(data, options); });
}

Logs Trainer::EvaluateHere(const ModelData& data, const EvaluateOptions& options) {
  Prepare(data, "evaluate");
  const int verbose = VerboseOf(options.verbose, "evaluate");
  CheckRemote("evaluate", options.callbacks, options.steps, "steps");
  Batches batches(data, state_->TrainedTargets(),
                  {.caller = "evaluate",
                   .batch_size = options.batch_size,
                   .steps_per_epoch = options.steps,
                   .starts_over = true,
                   .strategy = &engine().strategy(),
                   .auto_shard = options.auto_shard});
  if (engine().strategy().num_workers() > 1) {
    Facts facts = {{"steps", StrCat(options.steps)}};
    AddData("data", batches.common_data(), options.auto_shard, facts);
    engine().strategy().meeting().ExpectAgreement(
        StrCat("[keras/evaluate] expected all workers to call Evaluate together and to evaluate model '",
               state_->name(), "' alike"),
        facts);
    batches.ShareSeeds();
  }
  CallbackList callbacks(CallbacksOf(options.callbacks, verbose));
  callbacks.AttachAll(this, {.verbose = verbose, .steps = batches.steps(), .is_testing = true});
  Logs logs = RunTest(batches, callbacks, "Evaluate");
  engine().strategy().meeting().Barrier();
  return logs;
}

Logs Trainer::TrainOnBatch(const ModelData& batch) {
  Prepare(batch, "train_on_batch");
  const int64_t size = batch.dataset() ? 1 : batch.x()[0].shape().dim(0);
  Batches batches(batch, state_->TrainedTargets(), {.caller = "train_on_batch", .batch_size = size});
  const StepFunction& step = state_->Step(/*training=*/true, batches.y_specs());
  batches.StartEpoch();
  Batches::Parts whole;
  batches.Next(&whole);
  RunningLosses losses(step);
  PutWeightsBack();
  engine().ForgetEarlierTraining(0);
  losses.Add(step.Run(whole.front()));
  return losses.Read(/*of_all=*/true);
}

void Trainer::ResetMetrics() {
  if (const StepFunction* step = state_->MadeStep(/*training=*/true)) step->ResetMetrics();
}

SignalReport Trainer::CheckSignal(const ModelData& data, int64_t batch_size) {
  Prepare(data, "check_signal");
  Batches batches(data, state_->TrainedTargets(), {.caller = "check_signal", .batch_size = batch_size});
  return engine().MeasureSignal(state_->Step(/*training=*/true, batches.y_specs()), batches.Peek());
}

std::vector<Tensor> Trainer::PredictAll(const ModelData& x, const PredictOptions& options) {
  ModelEngine& engine = state_->EngineFor(SpecOfData(x, "predict"));
  Batches batches(x, {engine.layers().inputs(), 0},
                  {.caller = "predict", .batch_size = options.batch_size, .steps_per_epoch = options.steps});
  std::vector<std::vector<Tensor>> parts(engine.layers().outputs().size());
  batches.StartEpoch();
  Batches::Parts whole;
  while (batches.Next(&whole)) {
    const std::vector<Tensor> results = engine.Predict(whole.front());
    for (size_t i = 0; i < results.size(); ++i) parts[i].push_back(results[i]);
  }
  std::vector<Tensor> joined;
  joined.reserve(parts.size());
  for (const std::vector<Tensor>& part : parts) joined.push_back(Joined(part));
  return joined;
}

}  // namespace cohort::keras
