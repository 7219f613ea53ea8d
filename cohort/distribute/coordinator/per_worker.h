// The kinds of values that each worker has for itself. Internal to distribute/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"

namespace cohort::distribute {

// What has to run on a worker before its closures.
struct WorkerInitialization {
  FeedList feeds;
  std::vector<Node*> nodes;
};

// One value on each worker. A coordinator and its functions share it. Thread-safe.
class PerWorkerSource {
 public:
  virtual ~PerWorkerSource() = default;
  // Returns a number that changes when the workers have to initialize the value again. 0: there is nothing to run yet.
  virtual int64_t version() const = 0;
  // Returns what has to run on the worker before its first closure, again after the worker was lost, and again when
  // version() has changed. `has` is the version that the worker's session has, 0 if it has none.
  virtual WorkerInitialization Initialization(int worker, int64_t has) const = 0;
  // Returns the value for a closure on the worker. May add nodes.
  virtual std::vector<Output> Get(int worker) const = 0;
  // Returns the element with this number of the worker's data. Throws InvalidArgumentError if the value is no iterator.
  virtual std::vector<Output> GetAt(int worker, Output index) const;
  // Returns the number of elements of data that a closure takes by one Get.
  virtual int elements() const = 0;
  // Make the workers begin with other datasets, or at the start of the same ones. Throw InvalidArgumentError if the
  // value is no iterator.
  virtual void SetDatasets(const std::vector<data::Dataset>& datasets);
  virtual void Restart();
};

// The workers of a coordinator. `prefix` is a name that no other coordinator has, because resources of a task are
// shared by name.
struct WorkersOfCoordinator {
  std::vector<std::string> devices;
  std::string prefix;
};

// Adds, for each worker, local variables on the worker that keep the values of `make`, which is called in a device
// scope of the worker.
std::shared_ptr<PerWorkerSource> MakeStoredValue(
    Graph& graph, const WorkersOfCoordinator& workers,
    const std::function<std::vector<Output>(Graph& graph, int worker)>& make);

// Adds, for each worker, an iterator over elements of `spec`, which runs on the worker. SetDatasets gives it datasets.
// It throws InvalidArgumentError if the datasets have different elements, and what GraphIterator::MakeInitializer
// throws.
std::shared_ptr<PerWorkerSource> MakeIteratorsOfWorkers(Graph& graph, const WorkersOfCoordinator& workers,
                                                        const data::ElementSpec& spec);

}  // namespace cohort::distribute
