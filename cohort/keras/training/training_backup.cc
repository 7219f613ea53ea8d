// Trainer::BackUpTraining and RestoreTraining: the state of a running Fit as bytes, and back.
#include <cstring>
#include <map>

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/keras/files/model_saving.h"
#include "cohort/keras/files/weight_layout.h"
#include "cohort/keras/files/weights_file.h"
#include "cohort/keras/training/trainer.h"
#include "cohort/keras/training/variable_values.h"

namespace cohort::keras {
namespace {

// Groups of a weights file that a backup adds to those of the model: the progress, which is [epoch, batch, workers,
// replicas of each, flags, number of the training (EarlierTraining) or 0] and [examples, sums
// of losses]; for each worker its position in the data and the states of its metrics; for each of the chief's callbacks
// with a state its kind and its values.
constexpr char kProgress[] = "training";
constexpr int64_t kStopped = 1;          // a flag: StopTraining was called
constexpr int64_t kAveragesInModel = 2;  // a flag: PutAveragesInModel(true) was called
std::string GroupOfWorker(int worker) { return StrCat(kProgress, "/worker_", worker); }
std::string GroupOfCallback(size_t index) { return StrCat(kProgress, "/callback_", index); }

Tensor Bytes(const std::string& bytes) {
  Tensor tensor(DType::kUint8, Shape{static_cast<int64_t>(bytes.size())});
  std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
  return tensor;
}

std::string_view BytesOf(const Tensor& tensor) { return {static_cast<const char*>(tensor.raw_data()), tensor.bytes()}; }

bool IsProgress(const std::vector<Tensor>& values) {
  return values.size() == 2 && values[0].dtype() == DType::kInt64 && values[0].shape() == Shape{6} &&
         values[1].dtype() == DType::kFloat64 && values[1].shape().rank() == 1;
}

using ValuesByPath = std::map<std::string, const std::vector<Tensor>*>;

// Returns nullopt if a state has no class.
std::optional<std::vector<Callback::State>> StatesOfCallbacks(const ValuesByPath& values) {
  std::vector<Callback::State> states;
  for (size_t i = 0; values.count(GroupOfCallback(i)) > 0; ++i) {
    const std::vector<Tensor>& state = *values.at(GroupOfCallback(i));
    if (state.empty() || state[0].dtype() != DType::kUint8) return std::nullopt;
    states.push_back({std::string(BytesOf(state[0])), {state.begin() + 1, state.end()}});
  }
  return states;
}

std::string Crew(int64_t workers, int64_t replicas) {
  return StrCat(workers, " workers with ", replicas, " replicas each");
}

// Returns a text that all workers can compare.
std::string Describe(const std::optional<std::string>& backup) {
  if (!backup) return "none";
  return StrCat(backup->size(), " bytes with checksum ", crc32c::Value(*backup));
}

}  // namespace

FitProgress& Trainer::RunningFit(const char* caller) const {
  if (fit_ != nullptr) return *fit_;
  throw FailedPreconditionError(StrCat("[keras/", caller, "] expected to be called by a callback of Fit; model '",
                                       state_->name(), "' is not being fitted"));
}

std::vector<ops::Variable> Trainer::MetricVariables() const {
  std::vector<ops::Variable> variables;
  for (VariableInfo* variable : engine().graph().variables()) {
    if (variable->local && variable->name.find("train_metrics/") != std::string::npos) variables.emplace_back(variable);
  }
  return variables;
}

std::string Trainer::BackUpTraining() {
  FitProgress& fit = RunningFit("backup");
  const distribute::Strategy& strategy = engine().strategy();
  std::vector<Tensor> mine = {Bytes(fit.batches.Save())};
  const std::vector<ops::Variable> variables = MetricVariables();
  for (Tensor& state : engine().WithSession([&](Session& session) { return ReadVariables(session, variables); })) {
    mine.push_back(std::move(state));
  }
  const std::vector<std::string> of_workers =
      strategy.meeting().Gather(EncodeWeights({{GroupOfWorker(strategy.worker()), "", std::move(mine)}}));
  if (!is_chief()) return "";
  std::vector<WeightGroup> groups = WeightGroupsOf(*state_);
  const int64_t flags = (stop_training_ ? kStopped : 0) | (state_->averages_in_model() ? kAveragesInModel : 0);
  const std::vector<int64_t> place = {fit.epoch, fit.batch, strategy.num_workers(), strategy.num_local_replicas(),
                                      flags,     fit.number};
  groups.push_back({kProgress, "fit", {Tensor::Vector(place), Tensor::Vector(fit.running.Save())}});
  for (int worker = 0; worker < strategy.num_workers(); ++worker) {
    for (WeightGroup& group : DecodeWeights(of_workers[static_cast<size_t>(worker)], GroupOfWorker(worker))) {
      if (group.path == GroupOfWorker(worker)) groups.push_back(std::move(group));
    }
  }
  const std::vector<Callback::State> states = fit.callbacks.SaveStates();
  for (size_t i = 0; i < states.size(); ++i) {
    std::vector<Tensor> state = {Bytes(states[i].kind)};
    state.insert(state.end(), states[i].values.begin(), states[i].values.end());
    groups.push_back({GroupOfCallback(i), states[i].kind, std::move(state)});
  }
  return EncodeWeights(groups);
}

void Trainer::ReportLostSteps(bool restored, const std::string& where, const std::string& why) const {
  const std::string from = restored ? StrCat("training goes on from step ", engine().Iterations(), " of '", where, "'")
                                    : StrCat("there is no backup '", where, "', so training begins anew");
  if (!is_remote()) {
    if (restored) LogInfo("keras", from);
    return;
  }
  const std::optional<int64_t> earlier = engine().earlier_training()->steps();
  if (!earlier) {
    if (restored) LogInfo("keras", "the parameter servers have lost the number of steps, or are new ones; ", from);
    return;
  }
  const int64_t lost = *earlier - (restored ? engine().Iterations() : 0);
  if (lost <= 0) return LogInfo("keras", "no steps are lost: the parameter servers have made ", *earlier, "; ", from);
  LogWarning("keras", lost, " steps are lost: an earlier program has made ", *earlier, " on these parameter servers; ",
             from, why.empty() ? "" : StrCat(", because ", why));
}

std::optional<int64_t> Trainer::StepsAfterBackup(int64_t number, int64_t step, int64_t batch, std::string* why) const {
  EarlierTraining* earlier = engine().earlier_training();
  if (earlier == nullptr || !earlier->steps() || !earlier->Holds(number, why)) return std::nullopt;
  const int64_t more = *earlier->steps() - step;
  const int64_t left = fit_->batches.steps() - batch;  // of the epoch
  if (more >= 0 && more <= left) return more;
  *why = StrCat("the parameter servers are at step ", *earlier->steps(), ", which is not in the epoch of ",
                "the backup: that has steps ", step, " to ", step + left);
  return std::nullopt;
}

void Trainer::GoOnWithServers(int64_t more, const std::string& where) {
  FitProgress& fit = *fit_;
  engine().WithSession([&](Session& session) {
    engine().earlier_training()->Restore(session, [](const VariableInfo& variable) { return variable.local; });
  });
  if (fit.batch == 0 && more > 0) {  // what RunPass does at the begin of an epoch
    const StepFunction& step = *state_->MadeStep(/*training=*/true);
    step.ResetMetrics();
    fit.running = RunningLosses(step);
    fit.batches.StartEpoch();
  }
  if (fit.batches.of_workers() == nullptr) {
    Batches::Parts parts;
    for (int64_t i = 0; i < more; ++i) fit.batches.Next(&parts);
  }
  fit.batch += more;
  LogInfo("keras", "no steps are lost: the parameter servers hold this training, which goes on from step ",
          engine().Iterations(), ", ", more, " steps after '", where, "'");
  if (more == 0) return;
  LogInfo("keras", "loss and metrics of epoch ", fit.epoch + 1, " leave out these ", more,
          " steps, whose losses the earlier program has known");
}

bool Trainer::RestoreTraining(const std::optional<std::string>& backup, const std::string& where) {
  FitProgress& fit = RunningFit("restore");
  const distribute::Strategy& strategy = engine().strategy();
  strategy.meeting().ExpectAgreement(StrCat("[keras/restore] expected all workers to find the chief's backup as '",
                                            where, "', on a disk that they share or copied to each of them"),
                                     {{"backup", Describe(backup)}});
  if (is_remote()) {
    engine().WithSession([&](Session& session) { engine().earlier_training()->SetNumber(session, 0); });
    fit.number = static_cast<int64_t>(NewIncarnation() >> 1) | 1;
  }
  if (!backup) {
    ReportLostSteps(/*restored=*/false, where);
    return false;
  }
  const std::vector<WeightGroup> groups = DecodeWeights(*backup, StrCat("'", where, "'"));
  ValuesByPath values;
  for (const WeightGroup& group : groups) values[group.path] = &group.values;
  const auto refuse = [&](const std::string& expected, const std::string& got = "") {
    throw InvalidArgumentError(StrCat("[keras/restore] expected ", expected, " in '", where, "'; ", got,
                                      "remove it to begin the training of model '", state_->name(), "' anew"));
  };
  if (values.count(kProgress) == 0 || !IsProgress(*values[kProgress])) refuse("the backup of a training");
  const std::vector<Tensor>& progress = *values[kProgress];
  const auto* place = progress[0].data<int64_t>();
  if (place[2] != strategy.num_workers() || place[3] != strategy.num_local_replicas()) {
    refuse("a training by " + Crew(strategy.num_workers(), strategy.num_local_replicas()),
           StrCat("got one by ", Crew(place[2], place[3]), "; start as many again, or "));
  }
  if (!fit.running.Restore(progress[1].ToVector<double>())) refuse("a training with the same losses");
  const std::vector<Tensor>* mine = values[GroupOfWorker(strategy.worker())];
  if (mine == nullptr || mine->empty() || mine->front().dtype() != DType::kUint8) {
    refuse(StrCat("the position of worker ", strategy.worker()));
  }
  const std::vector<Tensor> states(mine->begin() + 1, mine->end());
  const std::vector<ops::Variable> metrics = MetricVariables();
  if (states.size() != metrics.size() || !ValuesFit(states, metrics, metrics.size())) {
    refuse("a training with the same metrics");
  }
  const std::vector<ops::Variable> state = engine().optimizer()->variables();
  if (values.count(kOptimizerGroup) == 0 || values[kOptimizerGroup]->size() != state.size() ||
      !ValuesFit(*values[kOptimizerGroup], state, state.size())) {
    refuse("a training with the same optimizer");
  }
  std::string why;
  const std::optional<int64_t> more =
      StepsAfterBackup(place[5], values[kOptimizerGroup]->front().scalar<int64_t>(), place[1], &why);
  if (is_remote() && place[5] != 0) fit.number = place[5];
  fit.batches.Restore(BytesOf(mine->front()));
  SetWeightGroups(*state_, groups, StrCat("'", where, "'"));
  engine().WithSession([&](Session& session) { AssignVariables(session, metrics, states); });
  fit.epoch = static_cast<int>(place[0]);
  fit.batch = place[1];
  stop_training_ = (place[4] & kStopped) != 0;
  state_->SetAveragesInModel((place[4] & kAveragesInModel) != 0);
  fit.restored_from = where;
  fit.restored_states = StatesOfCallbacks(values);
  if (!fit.restored_states) refuse("states of callbacks");
  more ? GoOnWithServers(*more, where) : ReportLostSteps(/*restored=*/true, where, why);
  return true;
}

}  // namespace cohort::keras
