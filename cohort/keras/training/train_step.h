// StepContext: the functions that describe a training or evaluation step of a model. A program passes its own steps to
// Compile:
//
//   void Clipped(keras::StepContext& step) {
//     const Output y_pred = step.Call(step.x()[0]);
//     const Output loss = step.Loss(y_pred);
//     step.ApplyGradients(train::ClipByGlobalNorm(step.Gradients(loss), 1.0f));
//     step.UpdateMetrics(y_pred);
//   }
//   model.Compile({.loss = "mse", .train_step = Clipped});
//
// The step is a graph. The functions below add nodes to it, once for each replica. These nodes then run in every step.
#pragma once

#include <memory>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/strategy.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/train/optimizer.h"

namespace cohort::keras {

struct StepParts;

// Describes the step of one replica. ModelEngine makes and owns it. One thread, while the step's graph is built.
class COHORT_EXPORT StepContext {
 public:
  explicit StepContext(std::unique_ptr<StepParts> parts);  // made by Model
  ~StepContext();

  Graph& graph() const;
  bool training() const;
  const std::vector<Output>& x() const;
  const std::vector<Output>& y() const;  // the targets of the outputs that have a loss
  Output sample_weight() const;          // float32 [batch]

  // Returns the model's outputs as float32, computed as training() says.
  std::vector<Output> Call(const std::vector<Output>& x);
  // Of a model with one input and one output. Throws InvalidArgumentError for one with more.
  Output Call(Output x);
  // The loss of the batch, a float32 scalar: of each output sum / weight as its loss has it, times its loss weight, and
  // the penalties of regularizers and layers. With several replicas the weight is that of the global batch, and each
  // has its share of the penalties: so their losses, and gradients, add up to those of the global batch.
  Output Loss(const std::vector<Output>& y_pred);
  Output Loss(Output y_pred) { return Loss(std::vector<Output>{y_pred}); }
  // Of the trainable weights; those that the loss does not depend on have none.
  std::vector<train::GradientAndVariable> Gradients(Output loss) const;
  // Lets the optimizer change the weights. Gradients are first summed over replicas, when the steps of all replicas are
  // described. Call it once, in training.
  void ApplyGradients(const std::vector<train::GradientAndVariable>& gradients);
  // What logs show as "loss", summed over replicas. A step that does not call it reports the result of its first Loss.
  void ReportLoss(Output loss);
  // Adds the batch to the metrics that were given to Compile.
  void UpdateMetrics(const std::vector<Output>& y_pred);
  void UpdateMetrics(Output y_pred) { UpdateMetrics(std::vector<Output>{y_pred}); }
  // This step's replica, for more than one.
  distribute::ReplicaContext& replica() const;
  // Adds another node that the step has to run.
  void AddTarget(Node* node);
  // Returns the trainable weights.
  std::vector<ops::Variable> trainable_variables() const;

 private:
  friend class ModelEngine;
  std::unique_ptr<StepParts> parts_;
};

// The default steps: predictions, loss and metrics; in training also the update of the weights.
COHORT_EXPORT void DefaultTrainStep(StepContext& step);
COHORT_EXPORT void DefaultTestStep(StepContext& step);

}  // namespace cohort::keras
