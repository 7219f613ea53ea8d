// RemoteStep: the closures of a step under a ParameterServerStrategy. Internal to keras/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/distribute/coordinator/cluster_coordinator.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/training/step_parts.h"

namespace cohort::keras {

// Batches that the workers read themselves. The elements are x..., y..., and weights if `weighted`.
struct WorkerBatches {
  int64_t id = 0;          // no other data have it
  data::ElementSpec spec;  // with an unknown batch dimension
  bool weighted = false;
  std::function<data::Dataset(int worker)> dataset;
};

// The closures of one step, training or evaluation. A closure makes one step or several, with batches of the chief or
// with those that its worker reads: the next ones in training, and in evaluation those with the numbers of the steps,
// so that each batch is evaluated once, on whichever worker. Each kind is made when it is first needed. A StepFunction
// owns it. Used by one thread.
class RemoteStep {
 public:
  // Adds the nodes of `steps` steps. If `batches` is valid, they take the elements of it, otherwise they have
  // arguments.
  using MakeClosure = std::function<distribute::ClosureFunctionPtr(const distribute::PerWorkerValue& batches,
                                                                   bool weighted, int steps)>;

  RemoteStep(distribute::ClusterCoordinator& coordinator, MakeClosure make)
      : coordinator_(coordinator), make_(std::move(make)) {}

  // Makes iterators over batches of this kind, which have no data yet, unless there are some.
  void PrepareFor(const WorkerBatches& batches);
  // Makes the workers read these batches from now on, unless they read them already.
  void UseBatches(const WorkerBatches& batches);
  // Makes the closure of this kind, if there is none yet.
  void Prepare(bool of_workers, int steps) { ClosureFor(of_workers, steps); }
  // Queues `steps` steps with batches of the worker that runs them. `first` is the number of the first step, on which
  // the random numbers of layers depend, and in evaluation the batches.
  distribute::RemoteValue Schedule(int64_t first, int steps);
  // Queues as many steps as there are batches. A batch has x..., y... and sample_weight.
  distribute::RemoteValue Schedule(int64_t first, const std::vector<std::vector<Tensor>>& batches);
  // Waits until all queued steps have ended. Throws the error of one that failed.
  void Join() { coordinator_.Join(); }
  // Returns how many batches of workers were taken for steps that did not end there.
  int64_t lost_batches() const { return coordinator_.lost_elements(); }

 private:
  const distribute::ClosureFunctionPtr& ClosureFor(bool of_workers, int steps);

  distribute::ClusterCoordinator& coordinator_;
  const MakeClosure make_;
  distribute::PerWorkerValue data_;  // what the closures of workers' batches read
  data::ElementSpec spec_;           // of data_
  bool weighted_ = false;
  int64_t data_id_ = 0;
  std::map<std::pair<bool, int>, distribute::ClosureFunctionPtr> closures_;
};

}  // namespace cohort::keras
