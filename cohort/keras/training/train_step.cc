#include "cohort/keras/training/train_step.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/training/step_parts.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/initializers.h"
#include "cohort/ops/variable_parts.h"

namespace cohort::keras {
namespace {

// Returns the weights of the steps of predictions with a mask. `weight` is that of the examples, or not valid.
Output StepWeights(Output mask, Output weight) {
  const Output counts = ops::Cast(mask, DType::kFloat32);
  return weight.valid() ? ops::Mul(counts, AlignWeights(counts, weight)) : counts;
}

}  // namespace

StepContext::StepContext(std::unique_ptr<StepParts> parts) : parts_(std::move(parts)) {}
StepContext::~StepContext() = default;

Graph& StepContext::graph() const { return parts_->weights.graph(); }
bool StepContext::training() const { return parts_->optimizer != nullptr; }
const std::vector<Output>& StepContext::x() const { return parts_->inputs.x; }
const std::vector<Output>& StepContext::y() const { return parts_->inputs.y; }
Output StepContext::sample_weight() const { return parts_->inputs.sample_weight; }
void StepContext::ReportLoss(Output loss) { parts_->reported_loss = loss; }
distribute::ReplicaContext& StepContext::replica() const { return *parts_->replica; }
void StepContext::AddTarget(Node* node) { parts_->targets.push_back(node); }

std::vector<Output> StepContext::Call(const std::vector<Output>& x) {
  Output number = parts_->inputs.step;
  if (training() && !number.valid()) number = parts_->optimizer->iterations().value();
  parts_->instance = std::make_unique<LayerInstance>(
      parts_->weights, LayerInstance::Options{.training = training(),
                                              .compute_dtype = parts_->compute_dtype,
                                              .step = training() ? number : Output(),
                                              .replica = parts_->replica,
                                              .updates = training() ? &parts_->updates : nullptr});
  std::vector<Output> outputs = parts_->instance->Add(parts_->layers, "", x);
  for (Output& output : outputs) {
    const Output mask = parts_->instance->MaskOf(output);
    if (output.dtype() == DType::kBfloat16) output = ops::Cast(output, DType::kFloat32);
    if (mask.valid()) parts_->masks.emplace_back(output, mask);
  }
  return outputs;
}

Output StepContext::Call(Output x) {
  const std::vector<Output> outputs = Call(std::vector<Output>{x});
  if (outputs.size() == 1) return outputs[0];
  throw InvalidArgumentError(
      StrCat("[keras/train_step] expected a model with one output to Call with one value; it has ", outputs.size(),
             ": give and take vectors"));
}

Output StepContext::Loss(const std::vector<Output>& y_pred) {
  if (y_pred.size() != parts_->compiled.losses.size()) {
    throw InvalidArgumentError(StrCat("[keras/train_step] expected the ", parts_->compiled.losses.size(),
                                      " outputs of the model in Loss; got ", y_pred.size()));
  }
  std::vector<Output> terms;
  size_t target = 0;
  for (size_t i = 0; i < y_pred.size(); ++i) {
    if (parts_->compiled.losses[i] == nullptr) continue;
    const Output mask = parts_->MaskOf(y_pred[i]);
    const LossSums sums = parts_->compiled.losses[i]->Sums(y().at(target++), y_pred[i], sample_weight(), mask);
    Output loss = sums.sum;
    if (sums.weight.valid()) {
      const Output weight = parts_->replica->AllReduce(distribute::Reduction::kSum, sums.weight);
      loss = mask.valid() ? DivideNoNan(sums.sum, weight) : ops::Div(sums.sum, weight);
    }
    if (y_pred.size() > 1) parts_->output_losses.emplace_back(parts_->compiled.output_names[i] + "_loss", loss);
    const double weight = parts_->compiled.loss_weights[i];
    terms.push_back(weight == 1.0 ? loss : loss * static_cast<float>(weight));
  }
  std::vector<Output> penalties = parts_->instance->Penalties();
  penalties.insert(penalties.begin(), parts_->instance->losses().begin(), parts_->instance->losses().end());
  const int replicas = parts_->replica->num_replicas_in_sync();
  for (Output penalty : penalties) {
    if (penalty.dtype() != DType::kFloat32) penalty = ops::Cast(penalty, DType::kFloat32);
    terms.push_back(replicas == 1 ? penalty : penalty * (1.0f / static_cast<float>(replicas)));
  }
  Output total = terms.at(0);
  for (size_t i = 1; i < terms.size(); ++i) total = ops::Add(total, terms[i]);
  if (!parts_->reported_loss.valid()) parts_->reported_loss = total;
  return total;
}

Output StepContext::ScaleLoss(Output loss) const {
  const std::optional<double>& scale = parts_->compiled.optimizer->options().loss_scale_factor;
  return training() && scale ? loss * *scale : loss;
}

std::vector<ops::Variable> StepContext::trainable_variables() const {
  std::vector<ops::Variable> variables;
  for (const ModelWeight& weight : parts_->weights.weights()) {
    if (weight.trainable) variables.push_back(weight.variable);
  }
  return variables;
}

std::vector<train::GradientAndVariable> StepContext::Gradients(Output loss) const {
  const std::vector<ops::Variable> variables = ops::PartsOf(trainable_variables());
  std::vector<Output> handles;
  handles.reserve(variables.size());
  for (const ops::Variable& variable : variables) handles.push_back(variable.handle());
  const std::vector<Gradient> gradients = cohort::Gradients({loss}, handles);
  std::vector<train::GradientAndVariable> pairs;
  for (size_t i = 0; i < variables.size(); ++i) pairs.push_back({gradients[i], variables[i]});
  return pairs;
}

void StepContext::ApplyGradients(const std::vector<train::GradientAndVariable>& gradients) {
  if (!training()) throw FailedPreconditionError("[keras/train_step] expected ApplyGradients in a training step");
  if (gradients.empty()) {
    throw InvalidArgumentError("[keras/train_step] expected gradients to apply; the model has no trainable weights");
  }
  if (!parts_->gradients.empty()) {
    throw FailedPreconditionError("[keras/train_step] expected one call of ApplyGradients a step; got a second one");
  }
  parts_->gradients = gradients;
}

void StepContext::UpdateMetrics(const std::vector<Output>& y_pred) {
  const CompiledModel& compiled = parts_->compiled;
  for (const CompiledModel::OutputMetric& wanted : compiled.metrics) {
    size_t target = 0;  // of the outputs with a loss
    for (size_t i = 0; i < wanted.output; ++i) target += compiled.losses[i] != nullptr ? 1 : 0;
    const Output y_true = y().at(target);
    MetricInStep metric;
    metric.metric = wanted.metric.Resolve(y_true.shape(), y_pred.at(wanted.output).shape());
    const std::string& output = compiled.output_names[wanted.output];
    metric.name = output.empty() ? metric.metric->name() : output + "_" + metric.metric->name();
    const auto same = [&](const MetricInStep& other) { return other.name == metric.name; };
    if (wanted.weighted && std::any_of(parts_->metrics.begin(), parts_->metrics.end(), same))
      metric.name = "weighted_" + metric.name;
    if (std::any_of(parts_->metrics.begin(), parts_->metrics.end(), same)) {
      throw InvalidArgumentError(StrCat("[keras/model] expected metrics of different names; got two called '",
                                        metric.name, "'; name one of them"));
    }
    const size_t index = parts_->metrics.size();
    if (parts_->inputs.metrics != nullptr && index < parts_->inputs.metrics->size()) {
      metric.states = (*parts_->inputs.metrics)[index].states;
    } else {
      const std::string scope = StrCat(training() ? "train" : "test", "_metrics/", metric.name, "/");
      for (const MetricState& state : metric.metric->StatesFor(y_true.shape(), y_pred.at(wanted.output).shape())) {
        metric.states.emplace_back(
            graph(), state.shape, cohort::initializers::Zeros(),
            ops::VariableOptions{.name = scope + state.name, .trainable = false, .local = true, .dtype = state.dtype});
      }
    }
    const Output mask = metric.metric->uses_masks() ? parts_->MaskOf(y_pred[wanted.output]) : Output();
    Output weight = wanted.weighted ? sample_weight() : Output();
    if (mask.valid()) weight = StepWeights(mask, weight);
    AddTarget(metric.metric->Update(metric.states, y_true, y_pred[wanted.output], weight));
    parts_->metrics.push_back(std::move(metric));
  }
}

void DefaultTrainStep(StepContext& step) {
  const std::vector<Output> y_pred = step.Call(step.x());
  const Output loss = step.Loss(y_pred);
  if (!step.trainable_variables().empty()) {
    step.ApplyGradients(step.Gradients(step.ScaleLoss(loss)));
  } else if (step.replica().replica_id_in_sync_group() == 0) {
    LogWarning("keras", "the model has no trainable weights; Fit computes its loss and metrics and trains nothing");
  }
  step.UpdateMetrics(y_pred);
}

void DefaultTestStep(StepContext& step) {
  const std::vector<Output> y_pred = step.Call(step.x());
  step.Loss(y_pred);
  step.UpdateMetrics(y_pred);
}

}  // namespace cohort::keras
