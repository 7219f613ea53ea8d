// What the steps of all replicas of a process come to: one signature in which they exchange what belongs to the whole
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

struct ReplicatedStep {
  // Of all replicas, float32 scalars: loss, the loss of each output, and with several processes the number of examples.
  std::vector<Output> fetches;
  std::vector<Node*> targets;
};

// Adds the sums over replicas, the updates of the weights and those of the moving statistics to what the replicas'
// steps have collected, one StepParts for each replica of this process. `optimizers`: those of the replicas, or the one
// of the device where all variables live; none in a step that does not train. To be called once for a step.
ReplicatedStep JoinReplicas(const distribute::Strategy& strategy, const std::vector<StepParts*>& replicas,
                            const std::vector<GraphOptimizer*>& optimizers);

// A metric of all replicas: `local_result` of what this process's have counted, `result` of what all have.
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
