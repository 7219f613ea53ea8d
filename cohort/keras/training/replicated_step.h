// Joins the steps of all replicas of a process to one signature. In it the replicas sum their losses and gradients, and
// take the mean of their moving statistics. So each replica uses the values of the whole global batch. Internal to
// keras/.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/distribute/strategy.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/keras/training/step_parts.h"

namespace cohort::keras {

// The fetches and targets that run the step of all replicas of a process.
struct ReplicatedStep {
  // Float32 scalars, summed over all replicas of all processes: the loss, the loss of each output (if there are several
  // outputs), the number of examples (if CountsExamples), and `stop_vote` (if it is valid).
  std::vector<Output> fetches;
  std::vector<Node*> targets;
};

// Returns whether a step fetches the number of its examples: if other processes or other tasks have some of them.
bool CountsExamples(const distribute::Strategy& strategy);

// Completes the steps of the replicas: adds the sums over replicas, the updates of the weights, and the updates of the
// moving statistics. Throws FailedPreconditionError if the numbers of losses or updates differ between replicas.
// `replicas` has one StepParts for each replica of this process. `optimizers` has one optimizer for each
// copy of the variables; it is empty for a step that does not train. `stop_vote` is a float32 scalar that the step sums
// over replicas together with the losses; not valid: there is none. Call it once for each step.
ReplicatedStep JoinReplicas(const distribute::Strategy& strategy, const std::vector<StepParts*>& replicas,
                            const std::vector<GraphOptimizer*>& optimizers, const Output& stop_vote = {});

// A metric of all replicas. `local_result` counts the examples of this process's replicas; `result` counts the examples
// of the replicas of all processes. `resets` set its state variables to zero.
struct ReplicatedMetric {
  std::string name;
  MetricPtr metric;
  std::vector<Node*> resets;
  Output local_result;
  Output result;
};
// Returns the metrics of the step, in the order of StepParts::metrics. Adds nodes that compute their results.
std::vector<ReplicatedMetric> JoinMetrics(const distribute::Strategy& strategy,
                                          const std::vector<StepParts*>& replicas);

}  // namespace cohort::keras
