// Joins the steps of all replicas of a process to one signature, in which the replicas exchange the values of the whole
// global batch. Internal to keras/.
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
  // The values for all replicas, float32 scalars: loss, the loss of each output, and with several processes the number
  // of examples.
  std::vector<Output> fetches;
  std::vector<Node*> targets;
};

// Completes the steps of the replicas: adds the sums over replicas, the updates of the weights and those of the moving
// statistics. `replicas` has one StepParts for each replica of this process. `optimizers` are those of the replicas, or
// the one of the device where all variables are; a step that does not train has none. Call it once for a step.
ReplicatedStep JoinReplicas(const distribute::Strategy& strategy, const std::vector<StepParts*>& replicas,
                            const std::vector<GraphOptimizer*>& optimizers);

// A metric of all replicas. `local_result` counts the batches of this process's replicas, `result` those of all
// replicas.
struct ReplicatedMetric {
  std::string name;
  MetricPtr metric;
  std::vector<Node*> resets;
  Output local_result;
  Output result;
};
std::vector<ReplicatedMetric> JoinMetrics(const distribute::Strategy& strategy,
                                          const std::vector<StepParts*>& replicas);

}  // namespace cohort::keras
