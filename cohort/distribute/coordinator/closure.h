// Closures: functions that a ClusterCoordinator runs on workers. A function is a part of the graph that exists once for
// each worker. A closure is one call of a function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/coordinator/remote_value.h"
#include "cohort/graph/graph.h"

namespace cohort::distribute {

class PerWorkerSource;

// A value that each worker has for itself (ClusterCoordinator::CreatePerWorkerValue, CreatePerWorkerDataset). Cheap to
// copy. It can be used while its coordinator lives.
class COHORT_EXPORT PerWorkerValue {
 public:
  PerWorkerValue() = default;
  explicit PerWorkerValue(std::shared_ptr<PerWorkerSource> source) : source_(std::move(source)) {}
  bool valid() const { return source_ != nullptr; }
  const std::shared_ptr<PerWorkerSource>& source() const { return source_; }

 private:
  std::shared_ptr<PerWorkerSource> source_;
};

// What a closure runs on one worker.
struct COHORT_EXPORT ClosureNodes {
  std::vector<Output> fetches;  // the values of the RemoteValue
  std::vector<Node*> targets;   // nodes that have to run, such as updates
};

// What a function sees while it adds its nodes for one worker. It lives during that call.
class COHORT_EXPORT ClosureContext {
 public:
  ClosureContext(Graph& graph, int worker, std::string device)
      : graph_(graph), worker_(worker), device_(std::move(device)) {}
  ClosureContext(const ClosureContext&) = delete;
  ClosureContext& operator=(const ClosureContext&) = delete;

  Graph& graph() const { return graph_; }
  int worker() const { return worker_; }                 // 0, 1, ...
  const std::string& device() const { return device_; }  // "/job:worker/replica:0/task:0/device:..."
  // Adds an argument and returns its value. The n-th call is for the n-th argument of Schedule.
  Output Argument(DType dtype, const Shape& shape);
  // Makes `placeholder`, which the function has added itself, the next argument.
  void AddArgument(Output placeholder) { arguments_.push_back(placeholder); }
  // Returns this worker's value. For a dataset, these are the components of its next element; all of them are of one
  // element, and each further call takes a further element. A closure ends with OutOfRangeError at the end of the data.
  std::vector<Output> Get(const PerWorkerValue& value);
  // Returns the components of the element with the number `index` (a scalar int64, from 0) of this worker's dataset
  // (GraphIterator::GetAt). If all workers have one dataset, and each closure its own numbers, each element is in one
  // closure, also if a worker is lost. Throws InvalidArgumentError if the value is no dataset.
  std::vector<Output> GetAt(const PerWorkerValue& value, Output index);
  // Says that the function takes as many further elements of `value` as one Get, by nodes that it has added itself.
  // They count if they are lost (ClusterCoordinator::lost_elements).
  void CountAgain(const PerWorkerValue& value);

  const std::vector<Output>& arguments() const { return arguments_; }
  const std::vector<std::shared_ptr<PerWorkerSource>>& sources() const { return sources_; }
  // Returns how many elements of data a call of the function takes for good.
  int elements() const { return elements_; }

 private:
  const std::shared_ptr<PerWorkerSource>& AddSource(const PerWorkerValue& value);

  Graph& graph_;
  const int worker_;
  const std::string device_;
  std::vector<Output> arguments_;
  std::vector<std::shared_ptr<PerWorkerSource>> sources_;
  int elements_ = 0;
};

// Adds the nodes of a function for one worker. The coordinator calls it once for each worker, in a device scope of the
// worker. The calls have to add equal nodes. It must not call the coordinator. Variables that all workers use must
// exist before.
using ClosureBody = std::function<ClosureNodes(ClosureContext&)>;

// A function in the graph of a coordinator. MakeFunction makes it. Immutable and thread-safe. It can be used while the
// coordinator lives.
class COHORT_EXPORT ClosureFunction {
 public:
  // The nodes of one worker.
  struct OfWorker {
    std::vector<Output> arguments;
    std::vector<std::shared_ptr<PerWorkerSource>> sources;
    int elements = 0;  // of data, which are lost if the call does not end
    std::vector<Output> fetches;
    std::vector<Node*> targets;
  };
  ClosureFunction(std::string name, std::vector<OfWorker> workers)
      : name_(std::move(name)), workers_(std::move(workers)) {}

  const std::string& name() const { return name_; }
  const OfWorker& of(int worker) const { return workers_[static_cast<size_t>(worker)]; }
  // Throws InvalidArgumentError, with the argument's number, if the values do not fit the arguments.
  void CheckArguments(const std::vector<Tensor>& arguments) const;

 private:
  const std::string name_;
  const std::vector<OfWorker> workers_;
};
using ClosureFunctionPtr = std::shared_ptr<const ClosureFunction>;

// One call of a function. The queue, the worker that runs it, and the program (its result) share it.
struct COHORT_EXPORT Closure {
  int64_t number = 0;   // 1, 2, 3... in the order of Schedule
  int64_t lowest = 0;   // at the latest start: every closure of a smaller number has ended
  int64_t cancels = 0;  // at the latest start: how often the queue had told the workers to cancel what they run
  ClosureFunctionPtr function;
  std::vector<Tensor> arguments;
  std::shared_ptr<RemoteResult> result;
};
using ClosurePtr = std::shared_ptr<Closure>;

}  // namespace cohort::distribute
