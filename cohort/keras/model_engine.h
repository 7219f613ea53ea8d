// ModelEngine: a built model in one graph with one session - its weights and the step functions that are added when
// they are first needed. Internal to keras/.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/data/element.h"
#include "cohort/keras/layer_graph.h"
#include "cohort/keras/layer_instance.h"
#include "cohort/keras/logs.h"
#include "cohort/keras/signal_check.h"
#include "cohort/keras/step_parts.h"
#include "cohort/keras/train_step.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {

// One signature that runs batch after batch.
class StepFunction {
 public:
  // Runs the step on one batch: x..., y..., sample_weight. Returns the loss and the loss of each output (those of
  // models with several).
  std::vector<float> Run(const std::vector<Tensor>& batch) const;
  const std::vector<std::string>& output_loss_names() const { return output_loss_names_; }
  // Metrics are zero afterwards, or read.
  void ResetMetrics() const;
  Logs ReadMetrics() const;
  std::vector<std::pair<std::string, MetricPtr>> metrics() const;
  // What y has to be; its batch dimension is unknown.
  const std::vector<data::TensorSpec>& y_specs() const { return y_specs_; }

 private:
  friend class ModelEngine;
  std::vector<data::TensorSpec> y_specs_;
  std::vector<Output> feeds_;
  Output loss_;
  std::vector<LayerInstance::LayerValues> layer_values_;
  std::vector<std::string> output_loss_names_;
  std::vector<std::pair<std::string, MetricPtr>> metrics_;
  std::optional<Callable> step_;
  std::optional<Callable> reset_;
  std::optional<Callable> results_;
};

// For one thread at a time.
class ModelEngine {
 public:
  using StepBody = std::function<void(StepContext&)>;

  // Adds the weights and gives them their initial values.
  ModelEngine(std::shared_ptr<const LayerGraph> layers, DType compute_dtype, int64_t seed,
              const SessionConfig& session_config);

  const LayerGraph& layers() const { return *layers_; }
  const std::vector<ModelWeight>& weights() const { return weights_.weights(); }
  // Path and outputs of each of layers().steps().
  std::vector<LayerInstance::LayerValues> step_values() const;
  Graph& graph() { return graph_; }
  Session& session() { return *session_; }
  std::vector<Tensor> GetWeights();
  // Throws InvalidArgumentError that names the first weight that does not fit.
  void SetWeights(const std::vector<Tensor>& values);

  // The optimizer's variables; to be called before the first TrainFunction, once for each Compile.
  void SetOptimizer(const Optimizer& optimizer);
  GraphOptimizer* optimizer() const { return optimizer_.get(); }
  double GetLearningRate();
  void SetLearningRate(double rate);
  int64_t Iterations();

  // A step that `body` describes. `y_specs`: one a target.
  StepFunction MakeStep(const CompiledModel& compiled, bool training, const std::vector<data::TensorSpec>& y_specs,
                        const StepBody& body);
  // How the signal goes through the layers in a step on `batch`, of which nothing is updated.
  SignalReport MeasureSignal(const StepFunction& step, const std::vector<Tensor>& batch);
  // The outputs for a batch of inputs, as in inference.
  std::vector<Tensor> Predict(const std::vector<Tensor>& x);

 private:
  std::vector<Output> InputPlaceholders();
  // Gives all variables that are new in the graph their initial values.
  void RunInitializers();

  const std::shared_ptr<const LayerGraph> layers_;
  const DType compute_dtype_;
  Graph graph_;
  WeightStore weights_{graph_};
  std::unique_ptr<LayerInstance> prediction_;
  std::vector<Output> x_;
  std::vector<Output> predictions_;
  std::unique_ptr<GraphOptimizer> optimizer_;
  std::unique_ptr<Session> session_;
  std::optional<Callable> predict_;
  std::vector<Output> new_values_;  // of SetWeights
  std::optional<Callable> assign_;
  std::optional<Callable> set_learning_rate_;
  std::set<const VariableInfo*> initialized_;
};

}  // namespace cohort::keras
