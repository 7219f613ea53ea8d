// The inputs of a StepContext, and the parts of a step that it collects. Internal to keras/.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/distribute/strategy.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/layers/layer_instance.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/optimizers/optimizer.h"

namespace cohort::keras {

// The arguments of Compile, with an entry of `losses` for each output. A metric may still be a name, such as
// "accuracy"; StepContext::UpdateMetrics chooses the metric for it.
struct CompiledModel {
  struct OutputMetric {
    size_t output;
    MetricArgument metric;
    bool weighted;
  };
  OptimizerPtr optimizer;
  std::vector<LossPtr> losses;            // one for each output; null: the output has no loss
  std::vector<double> loss_weights;       // one for each output
  std::vector<OutputMetric> metrics;      // of outputs that have a loss
  std::vector<std::string> output_names;  // one for each output; with a single output it is ""
  int steps_per_execution = 1;

  // Returns the number of outputs that have a loss. The data have one target for each of these outputs.
  size_t targets() const {
    size_t count = 0;
    for (const LossPtr& loss : losses) count += loss != nullptr ? 1 : 0;
    return count;
  }
};

// A metric and its state variables in a step.
struct MetricInStep {
  std::string name;  // in the logs: "accuracy"
  MetricPtr metric;
  std::vector<ops::Variable> states;
};

// The values on which a step works.
struct StepInputs {
  std::vector<Output> x, y;
  Output sample_weight;
  Output step = {};  // the number of the step, for the random numbers of layers; not valid: that of the optimizer
  // If not null, the step uses the states of these metrics, which another copy of the step has made.
  const std::vector<MetricInStep>* metrics = nullptr;
};

// The state of a StepContext: the step of one replica while the program's step function adds its nodes to the graph.
// Its StepContext owns it. Used by one thread.
struct StepParts {
  const LayerGraph& layers;
  const CompiledModel& compiled;
  WeightStore& weights;
  GraphOptimizer* optimizer;  // null in a step that does not train
  DType compute_dtype;
  StepInputs inputs;
  distribute::ReplicaContext* replica;  // dangling after the program's step function has returned

  // Returns the values of a batch: x..., y..., sample_weight.
  std::vector<Output> feeds() const {
    std::vector<Output> all = inputs.x;
    all.insert(all.end(), inputs.y.begin(), inputs.y.end());
    all.push_back(inputs.sample_weight);
    return all;
  }

  // Returns the mask that an output of the model carries, or an Output that is not valid.
  Output MaskOf(const Output& output) const {
    for (const auto& [value, mask] : masks) {
      if (value == output) return mask;
    }
    return {};
  }

  // The members below are collected while the step is described.
  std::unique_ptr<LayerInstance> instance;            // of the last StepContext::Call
  std::vector<std::pair<Output, Output>> masks;       // outputs of all Calls that carry a mask, with the mask
  WeightUpdates updates;                              // moving statistics of all Calls; in training steps only
  std::vector<train::GradientAndVariable> gradients;  // the argument of StepContext::ApplyGradients
  Output reported_loss;
  std::vector<std::pair<std::string, Output>> output_losses;
  std::vector<MetricInStep> metrics;
  std::vector<Node*> targets;  // the arguments of StepContext::AddTarget
};

}  // namespace cohort::keras
