// Compile, and the steps of Model.
#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/model.h"
#include "cohort/keras/training/model_engine.h"

namespace cohort::keras {

void Model::Compile(const CompileOptions& options) {
  if (!options.optimizer) throw InvalidArgumentError("[keras/compile] expected an optimizer; got none");
  const std::vector<LossArgument>& losses = options.loss.get();
  if (std::none_of(losses.begin(), losses.end(), [](const LossArgument& loss) { return bool(loss); })) {
    throw InvalidArgumentError("[keras/compile] expected a loss; got none");
  }
  compile_options_ = options;
  compiled_.reset();
  train_.reset();
  test_.reset();
  waiting_state_.clear();
  if (built()) ResolveCompiled();
}

void Model::ResolveCompiled() {
  const CompileOptions& options = *compile_options_;
  const size_t outputs = layers_->outputs().size();
  const auto check_count = [&](size_t count, const char* what) {
    if (count == 1 || count == outputs) return;
    throw InvalidArgumentError(StrCat("[keras/compile] expected one ", what, ", or one for each of the ", outputs,
                                      " outputs of model '", name(), "'; got ", count));
  };
  const std::vector<LossArgument>& losses = options.loss.get();
  check_count(losses.size(), "loss");
  if (!options.loss_weights.empty()) check_count(options.loss_weights.size(), "loss weight");
  auto resolved = std::make_unique<CompiledModel>();
  CompiledModel& compiled = *resolved;
  compiled.optimizer = options.optimizer.get();
  const std::vector<LayerInstance::LayerValues> values = engine().step_values();
  for (size_t i = 0; i < outputs; ++i) {
    compiled.losses.push_back(losses[losses.size() == 1 ? 0 : i].get());
    const std::vector<double>& weights = options.loss_weights;
    compiled.loss_weights.push_back(weights.empty() ? 1.0 : weights[weights.size() == 1 ? 0 : i]);
    compiled.output_names.push_back(outputs == 1 ? "" : values[layers_->output_values()[i].step].path);
    if (compiled.losses.back() == nullptr) continue;
    for (const MetricArgument& metric : options.metrics) compiled.metrics.push_back({i, metric, false});
    for (const MetricArgument& metric : options.weighted_metrics) compiled.metrics.push_back({i, metric, true});
  }
  compiled_ = std::move(resolved);
  engine().SetOptimizer(*compiled_->optimizer);
}

void Model::RequireCompiled(const char* caller) const {
  if (compile_options_) return;
  throw FailedPreconditionError(
      StrCat("[keras/", caller, "] expected a compiled model; call Compile on model '", name(), "' first"));
}

void Model::TrainStep(StepContext& step) const {
  const std::vector<Output> y_pred = step.Call(step.x());
  const Output loss = step.Loss(y_pred);
  step.ApplyGradients(step.Gradients(loss));
  step.ReportLoss(loss);
  step.UpdateMetrics(y_pred);
}

void Model::TestStep(StepContext& step) const {
  const std::vector<Output> y_pred = step.Call(step.x());
  step.ReportLoss(step.Loss(y_pred));
  step.UpdateMetrics(y_pred);
}

const StepFunction& Model::Step(bool training, const std::vector<data::TensorSpec>& y_specs) {
  std::unique_ptr<StepFunction>& step = training ? train_ : test_;
  if (step != nullptr) {
    bool same = true;
    for (size_t i = 0; i < y_specs.size(); ++i) {
      const data::TensorSpec& built = step->y_specs()[i];
      if (built.dtype == y_specs[i].dtype && built.shape.IsCompatibleWith(y_specs[i].shape)) continue;
      if (training) {
        throw InvalidArgumentError(StrCat("[keras/fit] expected targets ", built.dtype, built.shape, " as when model '",
                                          name(), "' was first fitted; got ", y_specs[i].dtype, y_specs[i].shape,
                                          "; Compile it again to change them"));
      }
      same = false;
    }
    if (same) return *step;
  }
  const auto body = [this, training](StepContext& context) { training ? TrainStep(context) : TestStep(context); };
  step = std::make_unique<StepFunction>(engine().MakeStep(*compiled_, training, y_specs, body));
  if (training && !waiting_state_.empty()) {
    SetOptimizerState(std::exchange(waiting_state_, {}), "the file that was loaded");
  }
  return *step;
}

}  // namespace cohort::keras
