#include "cohort/keras/model_engine.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"

namespace cohort::keras {

std::vector<float> StepFunction::Run(const std::vector<Tensor>& batch) const {
  std::vector<float> losses;
  for (const Tensor& loss : (*step_)(batch)) losses.push_back(loss.scalar<float>());
  return losses;
}

void StepFunction::ResetMetrics() const {
  if (reset_) (*reset_)({});
}

Logs StepFunction::ReadMetrics() const {
  Logs logs;
  if (!results_) return logs;
  const std::vector<Tensor> values = (*results_)({});
  for (size_t i = 0; i < values.size(); ++i) logs.emplace_back(metrics_[i].first, values[i].scalar<float>());
  return logs;
}

std::vector<std::pair<std::string, MetricPtr>> StepFunction::metrics() const { return metrics_; }

ModelEngine::ModelEngine(std::shared_ptr<const LayerGraph> layers, DType compute_dtype, int64_t seed,
                         const SessionConfig& session_config)
    : layers_(std::move(layers)), compute_dtype_(compute_dtype) {
  graph_.set_seed(seed);
  x_ = InputPlaceholders();
  prediction_ = std::make_unique<LayerInstance>(weights_, LayerInstance::Options{.compute_dtype = compute_dtype});
  predictions_ = prediction_->Add(*layers_, "", x_);
  for (Output& output : predictions_) {
    if (output.dtype() == DType::kBfloat16) output = ops::Cast(output, DType::kFloat32);
  }
  weights_.Freeze();
  session_ = std::make_unique<Session>(graph_, "", session_config);
  RunInitializers();
}

std::vector<LayerInstance::LayerValues> ModelEngine::step_values() const {
  std::vector<LayerInstance::LayerValues> values;
  for (const LayerInstance::LayerValues& value : prediction_->values()) {
    const bool of_a_step = !value.path.empty() && value.path.find('/') == std::string::npos;
    if (of_a_step) values.push_back(value);
  }
  return values;
}

std::vector<Output> ModelEngine::InputPlaceholders() {
  std::vector<Output> placeholders;
  for (const LayerInput& input : layers_->inputs()) {
    placeholders.push_back(ops::Placeholder(graph_, input.dtype, input.shape, "x"));
  }
  return placeholders;
}

void ModelEngine::RunInitializers() {
  std::vector<Node*> initializers;
  for (const VariableInfo* variable : graph_.variables()) {
    if (initialized_.insert(variable).second) initializers.push_back(variable->initializer);
  }
  if (!initializers.empty()) session_->Run({}, {}, initializers);
}

std::vector<Tensor> ModelEngine::GetWeights() {
  std::vector<Output> values;
  for (const ModelWeight& weight : weights()) values.push_back(weight.variable.value());
  if (values.empty()) return {};
  // Variables are replaced by their updates, but may be written in place by rows: hand out copies.
  std::vector<Tensor> tensors = session_->Run(values);
  for (Tensor& tensor : tensors) tensor = tensor.Clone();
  return tensors;
}

void ModelEngine::SetWeights(const std::vector<Tensor>& values) {
  if (values.size() != weights().size()) {
    throw InvalidArgumentError(StrCat("[keras/model] expected ", weights().size(), " weights; got ", values.size()));
  }
  std::vector<Tensor> copies;
  for (size_t i = 0; i < values.size(); ++i) {
    const WeightSpec& spec = weights()[i].spec;
    if (values[i].dtype() != spec.dtype || !(values[i].shape() == spec.shape)) {
      throw InvalidArgumentError(StrCat("[keras/model] expected ", spec.dtype, spec.shape, " for weight '",
                                        weights()[i].path, "'; got ", values[i].dtype(), values[i].shape()));
    }
    copies.push_back(values[i].Clone());
  }
  if (!assign_) {
    std::vector<Node*> assignments;
    for (const ModelWeight& weight : weights()) {
      new_values_.push_back(ops::Placeholder(graph_, weight.spec.dtype, weight.spec.shape, "new_value"));
      assignments.push_back(weight.variable.Assign(new_values_.back()));
    }
    assign_ = session_->MakeCallable(new_values_, {}, {ops::Group(graph_, assignments, "set_weights")});
  }
  (*assign_)(copies);
}

void ModelEngine::SetOptimizer(const Optimizer& optimizer) {
  optimizer_ = optimizer.Make(graph_);
  set_learning_rate_.reset();
  RunInitializers();
}

double ModelEngine::GetLearningRate() { return session_->Run(optimizer_->learning_rate()).scalar<float>(); }

void ModelEngine::SetLearningRate(double rate) {
  const ops::Variable variable = optimizer_->learning_rate_variable();
  if (!variable.valid()) {
    throw FailedPreconditionError(
        "[keras/model] expected an optimizer with a fixed learning rate to set it; this one follows a schedule");
  }
  if (!set_learning_rate_) {
    const Output value = ops::Placeholder(graph_, DType::kFloat32, Shape(), "new_learning_rate");
    set_learning_rate_ = session_->MakeCallable({value}, {}, {variable.Assign(value)});
  }
  (*set_learning_rate_)({Tensor::Scalar(static_cast<float>(rate))});
}

int64_t ModelEngine::Iterations() { return session_->Run(optimizer_->iterations().value()).scalar<int64_t>(); }

StepFunction ModelEngine::MakeStep(const CompiledModel& compiled, bool training,
                                   const std::vector<data::TensorSpec>& y_specs, const StepBody& body) {
  auto made = std::make_unique<StepParts>(StepParts{.layers = *layers_,
                                                    .compiled = compiled,
                                                    .weights = weights_,
                                                    .optimizer = training ? optimizer_.get() : nullptr,
                                                    .compute_dtype = compute_dtype_,
                                                    .x = InputPlaceholders()});
  StepParts& parts = *made;
  for (const data::TensorSpec& spec : y_specs) parts.y.push_back(ops::Placeholder(graph_, spec.dtype, spec.shape, "y"));
  parts.sample_weight = ops::Placeholder(graph_, DType::kFloat32, Shape{-1}, "sample_weight");
  std::vector<Output> feeds = parts.x;
  feeds.insert(feeds.end(), parts.y.begin(), parts.y.end());
  feeds.push_back(parts.sample_weight);

  StepContext step(std::move(made));
  {
    const NameScope scope(graph_, training ? "train" : "test");
    body(step);
  }
  if (!parts.reported_loss.valid() || parts.instance == nullptr) {
    throw FailedPreconditionError(StrCat("[keras/train_step] expected ", training ? "TrainStep" : "TestStep",
                                         " to call the model and to report a loss (StepContext::ReportLoss); it did ",
                                         "not"));
  }
  StepFunction function;
  function.y_specs_ = y_specs;
  function.feeds_ = feeds;
  function.loss_ = parts.reported_loss;
  function.layer_values_ = parts.instance->values();
  std::vector<Output> fetches = {parts.reported_loss};
  for (const auto& [name, loss] : parts.output_losses) {
    function.output_loss_names_.push_back(name);
    fetches.push_back(loss);
  }
  std::vector<Node*> resets;
  std::vector<Output> results;
  for (const MetricInStep& metric : parts.metrics) {
    std::vector<Output> states;
    for (const ops::Variable& state : metric.states) {
      resets.push_back(state.initializer());
      states.push_back(state.value());
    }
    results.push_back(ops::Cast(metric.metric->Result(states), DType::kFloat32));
    function.metrics_.emplace_back(metric.name, metric.metric);
  }
  RunInitializers();
  function.step_ = session_->MakeCallable(feeds, fetches,
                                          {ops::Group(graph_, parts.targets, training ? "train_step" : "test_step")});
  if (!results.empty()) {
    function.reset_ = session_->MakeCallable({}, {}, resets);
    function.results_ = session_->MakeCallable({}, results);
  }
  return function;
}

std::vector<Tensor> ModelEngine::Predict(const std::vector<Tensor>& x) {
  if (!predict_) predict_ = session_->MakeCallable(x_, predictions_);
  return (*predict_)(x);
}

}  // namespace cohort::keras
