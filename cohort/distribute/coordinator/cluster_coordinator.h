// ClusterCoordinator: runs functions on the workers of a ParameterServerStrategy, without waiting for each of them.
//
//   const auto strategy = distribute::ParameterServerStrategy(resolver);
//   Graph graph;
//   ... variables, made in strategy->Scope(graph) ...
//   distribute::ClusterCoordinator coordinator(strategy, graph);
//   const auto batches = coordinator.CreatePerWorkerDataset(dataset);
//   const auto step = coordinator.MakeFunction([&](distribute::ClosureContext& worker) {
//     const std::vector<Output> batch = worker.Get(batches);
//     const Output loss = ...;
//     return distribute::ClosureNodes{.fetches = {loss}, .targets = {optimizer.Minimize(loss)}};
//   });
//   strategy->OpenSession(graph)->Run(ops::GlobalVariablesInitializer(graph));  // the optimizer's variables, too
//   for (int i = 0; i < 1000; ++i) coordinator.Schedule(step);
//   coordinator.Join();
//   coordinator.AnnounceDone();
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/coordinator/closure.h"
#include "cohort/distribute/coordinator/coordinator_options.h"
#include "cohort/distribute/coordinator/remote_value.h"
#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

struct ClosureWorkers;
class ClosureWorker;

// Runs closures of one graph on the workers of a strategy. It has the names and semantics of TensorFlow's class:
// - A closure runs on some worker, and there is no order between closures. Each worker runs several at a time.
// - If a worker is lost, its closures run again on other workers, and the worker may come back at any time. So a
//   closure may run more than once. But a task makes each of its updates of variables once. Random ops draw the same
//   numbers each time, because their seeds follow from the closure's number.
// - If a closure fails in another way, the closures that have not started and those that run are cancelled. The next
//   call of Schedule or Join waits until the latter have ended, and throws the error once. After that the coordinator
//   goes on.
// - If a parameter server was started again, its variables have no values. The next closure that uses it fails with
//   AbortedError, which names the task, unless no closure has used it before. The program may give all variables values
//   and go on.
// - If a parameter server, or every worker, is lost for longer than a limit of the options, the coordinator fails: each
//   later call throws UnavailableError.
// The program owns it; strategy and graph must live longer. The thread that makes it, or another one, may call it; all
// methods but the constructor are thread-safe. The destructor cancels what has not started and ends the sessions.
class COHORT_EXPORT ClusterCoordinator {
 public:
  // Throws InvalidArgumentError if the strategy has no workers for closures, or an option is out of range. Does not
  // wait for the workers.
  ClusterCoordinator(StrategyPtr strategy, Graph& graph, const CoordinatorOptions& options = {});
  ~ClusterCoordinator();
  ClusterCoordinator(const ClusterCoordinator&) = delete;
  ClusterCoordinator& operator=(const ClusterCoordinator&) = delete;

  const Strategy& strategy() const { return *strategy_; }
  int num_workers() const { return static_cast<int>(workers_.size()); }

  // Adds the nodes of a function to the graph, once for each worker. Throws what `body` throws, and
  // FailedPreconditionError if it adds different arguments or fetches for two workers or an op of a queue, or if it
  // uses a variable that is not on a parameter server: make variables in strategy->Scope(graph).
  ClosureFunctionPtr MakeFunction(const ClosureBody& body, const std::string& name = "closure");
  // Queues one call of a function. `arguments` are the values of ClosureContext::Argument, in order. Returns at once,
  // but waits while 262144 closures are queued. Throws the error of an earlier closure, InvalidArgumentError if the
  // arguments do not fit, and FailedPreconditionError if it is called while a function is made.
  RemoteValue Schedule(const ClosureFunctionPtr& function, std::vector<Tensor> arguments = {});
  // Waits until every closure has ended. Throws as Schedule does.
  void Join();
  // Returns whether every closure has ended, without an error that Join would throw.
  bool Done();
  // Waits for the closures' ends, and returns their values. Throws what RemoteValue::Fetch throws.
  static RunResults Fetch(const RemoteValue& value) { return value.Fetch(); }
  static std::vector<RunResults> Fetch(const std::vector<RemoteValue>& values);

  // Makes values on each worker: `make` is called once for each worker and adds their nodes, in a device scope of the
  // worker. The values are computed before the worker's first closure, and again after the worker was lost.
  PerWorkerValue CreatePerWorkerValue(const std::function<std::vector<Output>(Graph& graph, int worker)>& make);
  // Makes an iterator over the dataset on each worker. Each worker has all elements, in an order of its own if the
  // dataset shuffles without a seed; so let it repeat, and count steps. The iterator of a worker begins anew if the
  // worker or its session was lost. Elements that a closure had taken then are not used again; lost_elements counts
  // them. The second form makes the dataset of each worker by a function. Throws FailedPreconditionError if the dataset
  // calls a function of this process, and InvalidArgumentError if the workers' elements differ.
  PerWorkerValue CreatePerWorkerDataset(const data::Dataset& dataset);
  PerWorkerValue CreatePerWorkerDataset(const std::function<data::Dataset(int worker)>& make);
  // Makes an iterator over elements of `spec` on each worker, which has no data until SetPerWorkerDataset.
  PerWorkerValue CreatePerWorkerIterator(const data::ElementSpec& spec);
  // Makes the iterators of `value` begin with other datasets, or at the start of the same ones, before each worker's
  // next closure. Throw what CreatePerWorkerDataset throws, InvalidArgumentError if the elements do not fit or `value`
  // is no iterator, and FailedPreconditionError while closures are queued or run: call Join before.
  void SetPerWorkerDataset(const PerWorkerValue& value, const std::function<data::Dataset(int worker)>& make);
  void RestartPerWorkerDataset(const PerWorkerValue& value);
  // Returns the dataset of a worker for CreatePerWorkerDataset(dataset): shuffles without a seed have an order of the
  // worker's own.
  static data::Dataset DatasetOfWorker(const data::Dataset& dataset, int worker);

  // Returns how many elements of datasets were taken for closures that did not end, and how many closures were queued
  // again because of a lost task or connection.
  int64_t lost_elements() const;
  int64_t repeated_closures() const;
  // Tells the workers and parameter servers that training is done, so that their Server::Join returns. Throws
  // FailedPreconditionError if the cluster has no job "chief".
  void AnnounceDone();

 private:
  // Throws FailedPreconditionError if this thread is in a ClosureBody.
  static void CheckOutside(const char* call);
  // Throws FailedPreconditionError if a closure has not ended, or its error was not thrown. Throws UnavailableError if
  // the coordinator has failed.
  void CheckIdle(const char* call);

  const StrategyPtr strategy_;
  Graph& graph_;
  std::unique_ptr<ClosureWorkers> shared_;
  std::vector<std::unique_ptr<ClosureWorker>> workers_;
  std::atomic<int64_t> functions_{0};  // how many MakeFunction has begun to make
};

}  // namespace cohort::distribute
