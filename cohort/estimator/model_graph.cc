#include "cohort/estimator/model_graph.h"

#include <algorithm>
#include <utility>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/stop_signal.h"
#include "cohort/core/str_cat.h"
#include "cohort/train/hooks/hook_values.h"

namespace cohort::estimator {
namespace {

constexpr const char* kLoss = "loss";

double NumberOf(const Tensor& value, const std::string& name) {
  if (value.shape() == Shape{}) {
    switch (value.dtype()) {
      case DType::kFloat32: return static_cast<double>(value.scalar<float>());
      case DType::kFloat64: return value.scalar<double>();
      case DType::kInt32: return value.scalar<int32_t>();
      case DType::kInt64: return static_cast<double>(value.scalar<int64_t>());
      default: break;
    }
  }
  throw InvalidArgumentError(
      StrCat("[estimator] expected a number as value of the metric ", name, "; got ", value.dtype(), value.shape()));
}

}  // namespace

void CheckSpec(const EstimatorSpec& spec, ModeKeys mode) {
  const auto missing = [mode](const char* field) {
    throw InvalidArgumentError(StrCat("[estimator] Missing ", field,
                                      ": the model function has to give it for the mode \"", ToString(mode), "\""));
  };
  if (spec.mode != mode) {
    throw InvalidArgumentError(
        StrCat("[estimator] expected a spec of the mode \"", ToString(mode), "\"; got \"", ToString(spec.mode), "\""));
  }
  if (mode != ModeKeys::kPredict && !spec.loss.valid()) missing("loss");
  if (mode == ModeKeys::kTrain && spec.train_op == nullptr) missing("train_op");
  if (mode == ModeKeys::kPredict && spec.predictions.empty()) missing("predictions");
  if (spec.loss.valid() && !spec.loss.shape().IsCompatibleWith(Shape{})) {
    throw InvalidArgumentError(
        StrCat("[estimator] expected a scalar as loss; got ", spec.loss.name(), " of the shape ", spec.loss.shape()));
  }
  for (const auto& [name, metric] : spec.eval_metric_ops) {
    if (metric.value.valid() && metric.update != nullptr && name != kLoss) continue;
    throw InvalidArgumentError(StrCat("[estimator] expected a value and an update of the metric \"", name,
                                      "\", and no metric called \"loss\""));
  }
}

int64_t StepOfCheckpoint(const std::string& prefix) { return train::StepOf(BundleReader(prefix).Read("global_step")); }

void ModelGraph::AddMeanLoss() { spec.eval_metric_ops[kLoss] = metrics::Mean(spec.loss, 1.0f, "mean_loss"); }

void ModelGraph::MakeScaffold(const RunConfig& config) {
  scaffold = spec.scaffold;
  if (scaffold != nullptr) return;
  saver =
      std::make_unique<Saver>(graph, SaverOptions{.max_to_keep = config.keep_checkpoint_max,
                                                  .keep_checkpoint_every_n_hours = config.keep_checkpoint_every_n_hours,
                                                  .save_relative_paths = true});
  scaffold =
      std::make_shared<train::Scaffold>(train::ScaffoldOptions{.saver = saver.get(), .global_step = global_step});
}

std::vector<Output> ModelGraph::MetricValues() const {
  std::vector<Output> values{global_step.value()};
  for (const auto& [name, metric] : spec.eval_metric_ops) values.push_back(metric.value);
  return values;
}

EvalMetrics ModelGraph::MetricsOf(const RunResults& values) const {
  EvalMetrics results{{"global_step", static_cast<double>(train::StepOf(values[0]))}};
  size_t i = 1;
  for (const auto& [name, metric] : spec.eval_metric_ops) results[name] = NumberOf(values[i++], name);
  return results;
}

void ModelGraph::RunMetrics(train::MonitoredSession& session, std::optional<int64_t> steps) const {
  std::vector<Node*> updates;
  for (const auto& [name, metric] : spec.eval_metric_ops) updates.push_back(metric.update);
  int64_t done = 0;
  const int64_t between_logs = std::max<int64_t>(steps.value_or(0) / 10, 1);
  try {
    while (done < steps.value_or(INT64_MAX)) {
      if (session.should_stop()) {
        if (!StopSignal::Received()) break;  // a hook has stopped it
        throw CancelledError(StrCat("[estimator] ", StopSignal::Name(), " has stopped the evaluation after ", done,
                                    " batches; there are no results"));
      }
      session.Run({}, {}, updates);
      ++done;
      if (steps && done % between_logs == 0) LogInfo("estimator", "Evaluation [", done, "/", *steps, "]");
    }
  } catch (const OutOfRangeError&) {
    // The end of the data ends the evaluation.
  }
  if (done > 0) return;
  throw FailedPreconditionError(
      "[estimator] expected data for the evaluation; the input function's dataset has no element");
}

void AddExamples(const std::map<std::string, Output>& names, const RunResults& batch, std::vector<Prediction>& all) {
  const int64_t rows = batch.front().shape().rank() == 0 ? -1 : batch.front().shape().dim(0);
  size_t i = 0;
  for (const auto& [name, output] : names) {
    const Tensor& value = batch[i++];
    if (rows >= 0 && value.shape().rank() > 0 && value.shape().dim(0) == rows) continue;
    throw InvalidArgumentError(StrCat("[estimator] expected predictions with one row for each example; got ",
                                      names.begin()->first, " ", batch.front().shape(), " and ", name, " ",
                                      value.shape()));
  }
  for (int64_t row = 0; row < rows; ++row) {
    Prediction one;
    i = 0;
    for (const auto& [name, output] : names) {
      const Tensor slice = batch[i++].Slice(row, row + 1);
      const std::span<const int64_t> dims = slice.shape().dims();
      one[name] = slice.Reshaped(Shape(dims.subspan(1)));
    }
    all.push_back(std::move(one));
  }
}

}  // namespace cohort::estimator
