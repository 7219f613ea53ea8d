// StepContext: what a training or evaluation step of a model is made with. Model::TrainStep and TestStep use it; a
// program's own steps override them:
//
//   class Clipped final : public keras::Sequential {
//    public:
//     using Sequential::Sequential;
//     void TrainStep(keras::StepContext& step) const override {
//       const std::vector<Output> y_pred = step.Call(step.x());
//       const Output loss = step.Loss(y_pred);
//       auto gradients = step.Gradients(loss);
//       ...                                   // change them
//       step.ApplyGradients(gradients);
//       step.ReportLoss(loss);
//       step.UpdateMetrics(y_pred);
//     }
//   };
//
// The step is a graph: the functions below add nodes, once, and what they describe then happens in every step.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/graph/gradients.h"
#include "cohort/keras/layer_instance.h"
#include "cohort/keras/loss.h"
#include "cohort/keras/metric.h"
#include "cohort/keras/optimizer.h"
#include "cohort/train/optimizer.h"

namespace cohort::keras {

class LayerGraph;

// What Compile has settled, with names resolved.
struct CompiledModel {
  OptimizerPtr optimizer;
  std::vector<LossPtr> losses;       // one an output; null: the output has none
  std::vector<double> loss_weights;  // likewise
  struct OutputMetric {
    size_t output;
    MetricArgument metric;
    bool weighted;
  };
  std::vector<OutputMetric> metrics;
  std::vector<std::string> output_names;  // of models with several outputs, else one ""
};

// For one thread, while the step's graph is built.
class StepContext {
 public:
  // A metric with its state in this step.
  struct MetricInStep {
    std::string name;  // as logs show it
    MetricPtr metric;
    std::vector<ops::Variable> states;
  };
  struct Parts {
    const LayerGraph& layers;
    const CompiledModel& compiled;
    WeightStore& weights;
    GraphOptimizer* optimizer;  // null in a step that does not train
    DType compute_dtype;
    std::vector<Output> x, y;
    Output sample_weight;
  };
  explicit StepContext(Parts parts);

  Graph& graph() const { return parts_.weights.graph(); }
  bool training() const { return parts_.optimizer != nullptr; }
  const std::vector<Output>& x() const { return parts_.x; }
  const std::vector<Output>& y() const { return parts_.y; }
  Output sample_weight() const { return parts_.sample_weight; }  // float32 [batch]

  // The model's outputs, float32, computed as training() says.
  std::vector<Output> Call(const std::vector<Output>& x);
  // The loss of the batch, a float32 scalar: of each output sum / weight as its loss has it, times its loss weight, and
  // the penalties of regularizers and layers. Over replicas these add up to the loss of the global batch.
  Output Loss(const std::vector<Output>& y_pred);
  // Of the trainable weights; those that the loss does not depend on have none.
  std::vector<train::GradientAndVariable> Gradients(Output loss) const;
  // Sums gradients over replicas and lets the optimizer change the weights. To be called once, in training.
  void ApplyGradients(const std::vector<train::GradientAndVariable>& gradients);
  // What logs show as "loss".
  void ReportLoss(Output loss) { reported_loss_ = loss; }
  // Adds the batch to the compiled metrics.
  void UpdateMetrics(const std::vector<Output>& y_pred);
  // More that the step has to run.
  void AddTarget(Node* node) { targets_.push_back(node); }
  // The trainable weights and all weights of this replica.
  std::vector<ops::Variable> trainable_variables() const;

  // What came of it. Throws FailedPreconditionError where the step has reported no loss.
  Output reported_loss() const;
  const std::vector<std::pair<std::string, Output>>& output_losses() const { return output_losses_; }
  const std::vector<MetricInStep>& metrics() const { return metrics_; }
  // Runs all that the step does.
  Node* Finish();
  // The layers as the last Call has added them.
  const LayerInstance& instance() const { return *instance_; }

 private:
  Parts parts_;
  std::unique_ptr<LayerInstance> instance_;
  Output reported_loss_;
  std::vector<std::pair<std::string, Output>> output_losses_;
  std::vector<MetricInStep> metrics_;
  std::vector<Node*> targets_;
};

}  // namespace cohort::keras
