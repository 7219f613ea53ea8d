// A run of Fit as bytes, and back.
#include <cstring>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/fit_loop.h"
#include "cohort/keras/model.h"
#include "cohort/keras/model_engine.h"
#include "cohort/keras/variable_values.h"
#include "cohort/keras/weight_layout.h"
#include "cohort/keras/weights_file.h"

namespace cohort::keras {
namespace {

// Groups of a weights file beside those of the model: [epoch, batch], [examples, sums of losses] and the position in
// the data; the states of the metrics.
constexpr char kProgress[] = "training";
constexpr char kMetrics[] = "training/metrics";

Tensor Bytes(const std::string& bytes) {
  Tensor tensor(DType::kUint8, Shape{static_cast<int64_t>(bytes.size())});
  std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
  return tensor;
}

bool IsProgress(const std::vector<Tensor>& values) {
  return values.size() == 3 && values[0].dtype() == DType::kInt64 && values[0].shape() == Shape{2} &&
         values[1].dtype() == DType::kFloat64 && values[1].shape().rank() == 1 && values[2].dtype() == DType::kUint8;
}

}  // namespace

FitProgress& Model::RunningFit(const char* caller) const {
  if (fit_ != nullptr) return *fit_;
  throw FailedPreconditionError(StrCat("[keras/", caller, "] expected to be called by a callback of Fit; model '",
                                       name(), "' is not being fitted"));
}

std::vector<ops::Variable> Model::MetricVariables() {
  std::vector<ops::Variable> variables;
  for (VariableInfo* variable : graph().variables()) {
    if (variable->local && variable->name.find("train_metrics/") != std::string::npos) variables.emplace_back(variable);
  }
  return variables;
}

std::string Model::BackUpTraining() {
  FitProgress& fit = RunningFit("backup");
  std::vector<WeightGroup> groups = WeightGroups();
  groups.push_back({kProgress,
                    "fit",
                    {Tensor::Vector(std::vector<int64_t>{fit.epoch, fit.batch}), Tensor::Vector(fit.running.Save()),
                     Bytes(fit.batches.Save())}});
  groups.push_back({kMetrics, "metrics", ReadVariables(session(), MetricVariables())});
  return EncodeWeights(groups);
}

void Model::RestoreTraining(const std::string& backup, const std::string& where) {
  FitProgress& fit = RunningFit("restore");
  const std::vector<WeightGroup> groups = DecodeWeights(backup, StrCat("'", where, "'"));
  std::map<std::string, const std::vector<Tensor>*> values;
  for (const WeightGroup& group : groups) values[group.path] = &group.values;
  const auto refuse = [&](const char* expected) {
    throw InvalidArgumentError(StrCat("[keras/restore] expected ", expected, " in '", where,
                                      "'; remove it to begin the training of model '", name(), "' anew"));
  };
  if (values.count(kProgress) == 0 || !IsProgress(*values[kProgress])) refuse("the backup of a training");
  const std::vector<Tensor>& progress = *values[kProgress];
  if (!fit.running.Restore(progress[1].ToVector<double>())) refuse("a training with the same losses");
  const std::vector<ops::Variable> metrics = MetricVariables();
  if (values.count(kMetrics) == 0 || values[kMetrics]->size() != metrics.size() ||
      !ValuesFit(*values[kMetrics], metrics, metrics.size())) {
    refuse("a training with the same metrics");
  }
  const std::vector<ops::Variable> state = engine().optimizer()->variables();
  if (values.count(kOptimizerGroup) == 0 || values[kOptimizerGroup]->size() != state.size() ||
      !ValuesFit(*values[kOptimizerGroup], state, state.size())) {
    refuse("a training with the same optimizer");
  }
  fit.batches.Restore({static_cast<const char*>(progress[2].raw_data()), progress[2].bytes()});
  SetWeightGroups(groups, StrCat("'", where, "'"));
  AssignVariables(session(), metrics, *values[kMetrics]);
  fit.epoch = static_cast<int>(progress[0].data<int64_t>()[0]);
  fit.batch = progress[0].data<int64_t>()[1];
}

}  // namespace cohort::keras
