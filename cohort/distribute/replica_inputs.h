// ReplicaInputs: the placeholders through which a distributed dataset is fed to the replicas of this process.
#pragma once

#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/input.h"
#include "cohort/distribute/strategy.h"
#include "cohort/runtime/session.h"

namespace cohort::distribute {

// A prepared step that is fed with the batches of a DistributedIterator. Cheap to copy. Thread-safe. It can be used
// while its session lives.
class COHORT_EXPORT ReplicaStep {
 public:
  // Runs the step and returns the fetches. `parts` has the components for each replica of this process, as
  // DistributedIterator::Next yields them. Throws InvalidArgumentError if there is not one part for each replica, or if
  // a part has a wrong number of components. Throws what Session::Run throws.
  RunResults operator()(const PerReplica<std::vector<Tensor>>& parts) const;

 private:
  friend class ReplicaInputs;
  ReplicaStep(Callable step, size_t replicas, size_t components)
      : step_(step), replicas_(replicas), components_(components) {}

  Callable step_;
  size_t replicas_, components_;
};

// Placeholders for the components of a distributed dataset's elements, for each replica on its device. Immutable and
// cheap to copy. It can be used while its graph lives.
class COHORT_EXPORT ReplicaInputs {
 public:
  // Adds the placeholders to `graph`. Batches may have any number of rows.
  ReplicaInputs(Graph& graph, const DistributedDataset& dataset);

  // Returns the placeholders of this replica, one for each component.
  const std::vector<Output>& Of(const ReplicaContext& replica) const;
  // Makes a step that is fed through all placeholders. Throws what Session::MakeCallable throws.
  ReplicaStep MakeStep(Session& session, const std::vector<Output>& fetches,
                       const std::vector<Node*>& targets = {}) const;

 private:
  PerReplica<std::vector<Output>> placeholders_;
};

}  // namespace cohort::distribute
