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

// Describes the step of one replica. ModelEngine makes and owns it. A program may use it only during the call of its
// step function, on the thread of that call.
class COHORT_EXPORT StepContext {
 public:
  explicit StepContext(std::unique_ptr<StepParts> parts);  // only ModelEngine calls it
  ~StepContext();

  Graph& graph() const;
  bool training() const;
  const std::vector<Output>& x() const;
  const std::vector<Output>& y() const;  // the targets of the outputs that have a loss
  Output sample_weight() const;          // float32 [batch]

  // Adds the model's layers and returns its outputs (bfloat16 outputs as float32). The layers compute as in training if
  // training() is true, else as in inference.
  std::vector<Output> Call(const std::vector<Output>& x);
  // As above, for a model with one input and one output. Throws InvalidArgumentError for other models.
  Output Call(Output x);
  // Returns the loss of this replica, a float32 scalar. Each output that has a loss adds (sum / weight) * w to it. Here
  // sum and weight are the LossSums of the output, and w is the output's entry in loss_weights of Compile. The
  // steps of an output of Call do not count for which its mask is false (see layer.h). The
  // penalties of regularizers and layers are added, too. With several replicas, `weight` is that of the global batch,
  // and each replica has an equal share of the penalties. So the losses of the replicas, and their gradients, add up to
  // those of the global batch. Requires: Call was called. Throws InvalidArgumentError if `y_pred` does not have one
  // value for each output of the model.
  Output Loss(const std::vector<Output>& y_pred);
  Output Loss(Output y_pred) { return Loss(std::vector<Output>{y_pred}); }
  // Returns the loss whose gradients the optimizer expects: `loss`, multiplied by CommonOptions::loss_scale_factor if
  // it is given and the step trains.
  Output ScaleLoss(Output loss) const;
  // Returns the gradients of `loss` for the trainable weights. A weight on which the loss does not depend has no
  // gradient (Gradient::exists() is false).
  std::vector<train::GradientAndVariable> Gradients(Output loss) const;
  // Makes the optimizer update the weights in each run of the step. The gradients are summed over all replicas first.
  // Throws FailedPreconditionError if the step does not train, or at a second call in the same step. Throws
  // InvalidArgumentError if `gradients` is empty.
  void ApplyGradients(const std::vector<train::GradientAndVariable>& gradients);
  // Sets the value that logs show as "loss"; it is summed over the replicas. Without this call, logs show the result of
  // the first call of Loss().
  void ReportLoss(Output loss);
  // Adds the batch to the metrics that were given to Compile. Throws InvalidArgumentError if two metrics have the same
  // name.
  void UpdateMetrics(const std::vector<Output>& y_pred);
  void UpdateMetrics(Output y_pred) { UpdateMetrics(std::vector<Output>{y_pred}); }
  // Returns the replica for which the step is described. For example, its AllReduce sums a value over all replicas.
  distribute::ReplicaContext& replica() const;
  // Adds another node that the step has to run.
  void AddTarget(Node* node);
  // Returns the trainable weights.
  std::vector<ops::Variable> trainable_variables() const;

 private:
  friend class ModelEngine;
  std::unique_ptr<StepParts> parts_;
};

// The default steps. They compute predictions, loss and metrics. DefaultTrainStep also updates the weights. If the
// model has no trainable weights, DefaultTrainStep logs a warning and updates none, as Keras.
COHORT_EXPORT void DefaultTrainStep(StepContext& step);
COHORT_EXPORT void DefaultTestStep(StepContext& step);

}  // namespace cohort::keras
