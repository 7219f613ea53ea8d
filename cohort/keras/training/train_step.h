// StepContext: what a training or evaluation step of a model is made with. A program gives steps of its own to Compile:
//
//   void Clipped(keras::StepContext& step) {
//     const std::vector<Output> y_pred = step.Call(step.x());
//     const Output loss = step.Loss(y_pred);
//     auto gradients = step.Gradients(loss);
//     ...                                   // change them
//     step.ApplyGradients(gradients);
//     step.ReportLoss(loss);
//     step.UpdateMetrics(y_pred);
//   }
//   model.Compile({.loss = "mse", .train_step = Clipped});
//
// The step is a graph: the functions below add nodes, once for each replica, and what they describe then happens in
// every step.
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

// For one thread, while the step's graph is built.
class COHORT_EXPORT StepContext {
 public:
  explicit StepContext(std::unique_ptr<StepParts> parts);  // made by Model
  ~StepContext();

  Graph& graph() const;
  bool training() const;
  const std::vector<Output>& x() const;
  const std::vector<Output>& y() const;  // of the outputs that have a loss
  Output sample_weight() const;          // float32 [batch]

  // The model's outputs, float32, computed as training() says.
  std::vector<Output> Call(const std::vector<Output>& x);
  // The loss of the batch, a float32 scalar: of each output sum / weight as its loss has it, times its loss weight, and
  // the penalties of regularizers and layers. With several replicas the weight is that of the global batch, and each
  // has its share of the penalties: so their losses, and gradients, add up to those of the global batch.
  Output Loss(const std::vector<Output>& y_pred);
  // Of the trainable weights; those that the loss does not depend on have none.
  std::vector<train::GradientAndVariable> Gradients(Output loss) const;
  // Sums gradients over replicas, when all replicas' steps are described, and lets the optimizer change the weights. To
  // be called once, in training.
  void ApplyGradients(const std::vector<train::GradientAndVariable>& gradients);
  // What logs show as "loss", summed over replicas.
  void ReportLoss(Output loss);
  // Adds the batch to the compiled metrics.
  void UpdateMetrics(const std::vector<Output>& y_pred);
  // This step's replica, for more than one.
  distribute::ReplicaContext& replica() const;
  // More that the step has to run.
  void AddTarget(Node* node);
  // The trainable weights.
  std::vector<ops::Variable> trainable_variables() const;

 private:
  friend class ModelEngine;
  std::unique_ptr<StepParts> parts_;
};

// The steps of a model that was given none: predictions, loss and metrics; in training the update of the weights.
COHORT_EXPORT void DefaultTrainStep(StepContext& step);
COHORT_EXPORT void DefaultTestStep(StepContext& step);

}  // namespace cohort::keras
