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

namespace cohort::distribute {

// One value on each worker. A coordinator and its functions share it. Thread-safe.
class PerWorkerSource {
 public:
  virtual ~PerWorkerSource() = default;
  // Returns the nodes that have to run on the worker before its first closure, and again after the worker was lost.
  virtual std::vector<Node*> Initializers(int worker) const = 0;
  // Returns the value for a closure on the worker. May add nodes.
  virtual std::vector<Output> Get(int worker) const = 0;
  // Returns the number of elements of data that a closure takes by one Get.
  virtual int elements() const = 0;
};

// The workers of a coordinator. `prefix` is a name that no other coordinator has, because resources of a task are
// shared by name.
struct WorkersOfCoordinator {
  std::vector<std::string> devices;
  std::string prefix;
};

// Adds, for each worker, local variables on the worker that keep the values of `make`, which is called in a device
// scope of the worker.
std::shared_ptr<const PerWorkerSource> MakeStoredValue(
    Graph& graph, const WorkersOfCoordinator& workers,
    const std::function<std::vector<Output>(Graph& graph, int worker)>& make);

// Adds, for each worker, an iterator over its dataset, which runs on the worker. Throws InvalidArgumentError if the
// datasets have different elements, and what data::MakeGraphIterator throws.
std::shared_ptr<const PerWorkerSource> MakeDatasetOfWorkers(Graph& graph, const WorkersOfCoordinator& workers,
                                                            const std::vector<data::Dataset>& datasets);

}  // namespace cohort::distribute
