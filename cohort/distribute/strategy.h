// Strategy: one program for many replicas that stay equal. Each process has one graph, which contains all replicas of
// this process, and a session of its own. The strategy knows the devices of the replicas, their numbers among all
// processes, and where variables are.
//
//   const auto strategy = distribute::Mirrored({"/cpu:0", "/cpu:1"});
//   Graph graph;
//   ops::Variable w;
//   {
//     const auto scope = strategy->Scope(graph);
//     w = ops::GetVariable(graph, "w", {4, 1});
//   }
//   const auto batches = distribute::DistributeDataset(strategy, dataset);
//   const distribute::ReplicaInputs inputs(graph, batches);
//   const auto losses = strategy->Run(graph, [&](distribute::ReplicaContext& replica) {
//     const std::vector<Output>& batch = inputs.Of(replica);
//     return replica.MeanOfGlobalBatch(ops::SquaredDifference(ops::MatMul(batch[0], replica.Local(w)), batch[1]));
//   });
//   train::MomentumOptimizer optimizer(0.1, 0.9);
//   Node* update = strategy->Minimize(optimizer, losses);
//
// The whole program is in examples/strategy_loop. Keras models take a strategy in their options and do all this by
// themselves. strategies.h makes strategies.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/communication_options.h"
#include "cohort/distribute/variable_placer.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/collective.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"
#include "cohort/train/optimizer.h"

namespace cohort {
class Server;
}

namespace cohort::distribute {

class Strategy;
class WorkerMeeting;

// One value for each replica of this process, in order.
template <typename T>
using PerReplica = std::vector<T>;

// One value for each copy of a variable in this process. There is one copy for each replica, or only one if replicas
// share variables.
template <typename T>
using PerCopy = std::vector<T>;

enum class Reduction { kSum, kMean };

// The replicas of a strategy: their processes and devices.
struct COHORT_EXPORT StrategyLayout {
  std::string name;                  // "MirroredStrategy"
  std::vector<std::string> devices;  // one for each replica of this process; "": the graph's scopes decide it
  std::vector<std::string> members;  // devices of all replicas of all processes, by rank
  int num_workers = 1;               // number of processes; each has equally many replicas
  int worker = 0;                    // number of this process
  bool is_chief = true;
  CommunicationOptions communication;
  std::shared_ptr<Server> server;  // this process's server; null: sessions go to `target`
  std::string target = {};         // if there is no server; "": each session has devices of its own
  // The tasks to which a ClusterCoordinator sends closures. Empty: the strategy does not use one.
  std::vector<std::string> closure_workers = {};
  int steps_in_flight = 1;  // the most steps of a Keras model on each of them at the same time
  std::chrono::milliseconds worker_timeout = std::chrono::hours(1);  // of Keras models: ParameterServerOptions
  std::chrono::milliseconds ps_timeout = std::chrono::seconds(60);
};

// The collectives that the replicas add in one call of Run. The n-th collective of one replica meets the n-th
// collectives of all other replicas, so all of them have the same key.
struct COHORT_EXPORT ReplicaCalls {
  std::vector<int64_t> instance_keys;
};

// The replica for which Strategy::Run calls its function. Run owns the context, which ends when the function returns.
// Only the thread that called Run may use it.
class COHORT_EXPORT ReplicaContext {
 public:
  ReplicaContext(const Strategy& strategy, Graph& graph, int local, ReplicaCalls* calls)
      : strategy_(strategy), graph_(graph), local_(local), calls_(calls) {}
  ReplicaContext(const ReplicaContext&) = delete;

  const Strategy& strategy() const { return strategy_; }
  Graph& graph() const { return graph_; }
  int local_replica() const { return local_; }  // number among the replicas of this process
  int replica_id_in_sync_group() const;         // rank among all replicas
  int num_replicas_in_sync() const;
  // Returns the sum or mean of `value` over all replicas of all processes. With one replica, returns `value`. Each
  // replica has to make the same calls in the same order, and the resulting nodes of all replicas have to run in the
  // same steps. `value` may have any dtype that collectives accept. It must have the same shape at all replicas.
  Output AllReduce(Reduction reduction, Output value);
  // Returns this replica's share of the mean of `values` over all elements of the global batch: the sum of its own
  // values, divided by the number of elements of all replicas. An AllReduce counts these elements. So the shares of all
  // replicas, and their gradients, add up to those of one device with the whole batch. This is also true if the parts
  // of the batch differ in size or have no rows.
  Output MeanOfGlobalBatch(Output values);
  // Returns this replica's copy of a variable that was made in the strategy's scope. If replicas share variables,
  // returns the shared variable.
  ops::Variable Local(const ops::Variable& variable) const;
  // Returns the number of AllReduces so far.
  size_t calls() const { return next_call_; }

 private:
  const Strategy& strategy_;
  Graph& graph_;
  const int local_;
  ReplicaCalls* const calls_;
  size_t next_call_ = 0;
};

// While it lives, the strategy makes and places the variables that this thread makes in the graph. The same thread has
// to destroy it, before the strategy and the graph.
class [[nodiscard]] COHORT_EXPORT StrategyScope {
 public:
  // Throws FailedPreconditionError if the thread is in the scope of another strategy for this graph.
  StrategyScope(const Strategy& strategy, Graph& graph);
  ~StrategyScope();
  StrategyScope(const StrategyScope&) = delete;

 private:
  std::unique_ptr<VariableCreatorScope> creator_;
  std::pair<const Graph*, const class Strategy*> entry_;
};

// Distributes the training of models over replicas. Programs and models share ownership (StrategyPtr). Its settings do
// not change. The group of its processes forms when a call first needs it. Thread-safe. Graphs that were made with a
// strategy may outlive it. Sessions on its target must end before the strategy, because the strategy owns the server.
class COHORT_EXPORT Strategy {
 public:
  // Programs use the functions of strategies.h instead. Throws InvalidArgumentError if the layout contradicts itself.
  Strategy(StrategyLayout layout, std::unique_ptr<const VariablePlacer> placer);
  ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  const std::string& name() const { return layout_.name; }
  int num_replicas_in_sync() const { return static_cast<int>(layout_.members.size()); }
  int num_local_replicas() const { return static_cast<int>(layout_.devices.size()); }
  int first_replica() const { return layout_.worker * num_local_replicas(); }  // rank of this process's first replica
  int num_workers() const { return layout_.num_workers; }
  int worker() const { return layout_.worker; }
  // Returns true in the process that writes checkpoints and summaries and prints messages.
  bool is_chief() const { return layout_.is_chief; }
  const std::vector<std::string>& devices() const { return layout_.devices; }
  const std::vector<std::string>& members() const { return layout_.members; }
  const CommunicationOptions& communication() const { return layout_.communication; }
  // Returns the workers to which a ClusterCoordinator sends closures ("/job:worker/replica:0/task:0"). A closure
  // computes on the worker's GPU, if it has one. Empty: the strategy trains without a coordinator.
  const std::vector<std::string>& closure_workers() const { return layout_.closure_workers; }
  // Return the fields of ParameterServerOptions.
  int steps_in_flight() const { return layout_.steps_in_flight; }
  std::chrono::milliseconds worker_timeout() const { return layout_.worker_timeout; }
  std::chrono::milliseconds ps_timeout() const { return layout_.ps_timeout; }
  // Returns this process's server, or null.
  const std::shared_ptr<Server>& server() const { return layout_.server; }
  // Returns true if each replica has a copy of every variable. If false, the replicas of a process share variables.
  bool has_copies() const { return placer_->makes_copies(); }
  int num_copies() const { return has_copies() ? num_local_replicas() : 1; }  // copies of each variable in this process
  // Returns the device for nodes that belong to a copy: the replica's device, or the shared device.
  std::string DeviceOfCopy(int copy) const;
  // session_target returns the target for sessions: a server, or "". If there is a server, session_config returns an
  // equal copy of `config`. If there is none, the copy has at least as many devices as the replicas and variables need,
  // except of device types that the program has configured (config::SetLogicalDevices).
  std::string session_target() const;
  SessionConfig session_config(SessionConfig config) const;
  // Opens a session on `graph` with session_target() and session_config(config). Throws what Session throws.
  std::unique_ptr<Session> OpenSession(const Graph& graph, const SessionConfig& config = {}) const;

  // While the result lives, the strategy's VariablePlacer makes the variables of the graph (as a variable creator). The
  // scope does not change how variables with VariableOptions::local are made.
  StrategyScope Scope(Graph& graph) const { return StrategyScope(*this, graph); }
  // Returns the copy of replica `local` of this process. Returns the variable itself if replicas share it, or if
  // `local` is 0. Throws FailedPreconditionError if there is no such copy, because the variable was not made in the
  // scope.
  ops::Variable Local(const ops::Variable& variable, int local) const;
  // Calls `fn` on this thread once for each replica of this process, in a device scope of the replica's device. Except
  // for the first replica, it also opens a name scope ("replica_1"). Returns the results. Throws
  // FailedPreconditionError if the replicas do not call AllReduce equally often.
  PerReplica<std::vector<Output>> Run(Graph& graph,
                                      const std::function<std::vector<Output>(ReplicaContext&)>& fn) const;
  // Does the same for a function with one result, such as a loss.
  PerReplica<Output> Run(Graph& graph, const std::function<Output(ReplicaContext&)>& fn) const;
  // Returns the sum or mean of a value over all replicas of all processes. In each process, the result is on the device
  // of its first replica. With one replica, returns its value. Throws InvalidArgumentError if there is not one value
  // for each replica of this process.
  Output Reduce(Reduction reduction, const PerReplica<Output>& values) const;
  // Returns the sum over the replicas of this process alone, on the first replica's device.
  Output SumHere(const PerReplica<Output>& values) const;
  // Returns, for each replica of this process, the sums of its dense tensors over all replicas of all processes. If
  // replicas have copies of variables, tensors are summed in buckets. The buckets follow the order in which the tensors
  // were added to the graph, so that the first sums begin while the backward pass still runs. A step then has to run
  // either all of the returned nodes or none of them. If replicas share variables, the sums are made on the variables'
  // device.
  PerReplica<std::vector<Output>> SumOverReplicas(const PerReplica<std::vector<Output>>& values) const;
  // Adds the update by which `optimizer` minimizes the sum of the losses of all replicas of all processes. This sum is
  // the loss of one device if each loss is a share (ReplicaContext::MeanOfGlobalBatch). `losses` has one loss for each
  // replica of this process, as Run returns them. When the returned node has run, all updates are done. Throws what
  // ComputeGradients and ApplyGradients throw.
  struct MinimizeOptions {
    std::vector<ops::Variable> variables = {};  // empty: all trainable variables made in the strategy's scopes
    ops::Variable global_step = {};             // if valid: grows by 1 after the update; must be made in the scope
  };
  Node* Minimize(train::Optimizer& optimizer, const PerReplica<Output>& losses, const MinimizeOptions& options) const;
  Node* Minimize(train::Optimizer& optimizer, const PerReplica<Output>& losses) const;
  // Does the first half of Minimize. Returns, for each copy of the variables, the gradients summed over all replicas of
  // all processes. A variable that consists of parts is replaced by its parts. The program may change the gradients
  // before the second half, in the same way for each copy, for example by train::ClipByGlobalNorm. Throws
  // InvalidArgumentError if there is no variable, or not one loss for each replica of this process. Throws
  // FailedPreconditionError if the replicas' losses depend on different variables.
  PerCopy<std::vector<train::GradientAndVariable>> ComputeGradients(
      const PerReplica<Output>& losses, const std::vector<ops::Variable>& variables = {}) const;
  // Does the second half of Minimize: updates all copies. When the returned node has run, all updates are done. All
  // processes have to run the node in the same steps, because it needs collectives. Throws InvalidArgumentError if
  // there is not one list of gradients for each copy. Throws what the optimizer throws.
  Node* ApplyGradients(train::Optimizer& optimizer, const PerCopy<std::vector<train::GradientAndVariable>>& gradients,
                       const ops::Variable& global_step = {}) const;

  // Values and gradients of the replicas, summed over all replicas of all processes.
  struct ReplicaSums {
    PerReplica<std::vector<Output>> values;
    PerReplica<std::vector<train::GradientAndVariable>> gradients;
  };
  // Sums dense values and gradients. GatherRows joins the gradients for which GathersRows returns true. All other
  // gradients are made dense and are summed in buckets, together with the values (SumOverReplicas). Throws
  // FailedPreconditionError if the replicas of this process have different numbers of gradients, if a gradient exists
  // at some of these replicas only, or if a gradient that is to be gathered is dense at some of them.
  ReplicaSums SumGradients(const PerReplica<std::vector<train::GradientAndVariable>>& gradients,
                           const PerReplica<std::vector<Output>>& values) const;
  // Returns true if SumGradients uses GatherRows for this gradient. This needs several replicas, a sparse gradient, and
  // a large variable whose shape is known.
  bool GathersRows(const Gradient& gradient, const ops::Variable& variable) const;
  // Returns, for each replica of this process, the rows of a sparse gradient of all replicas of all processes, by rank.
  // Indices may repeat. The result may also have rows of zeros that no replica gave. Such a row has an index that some
  // replica gave, so it changes no sum. A step has to run either all of the returned nodes or none of them.
  PerReplica<Gradient> GatherRows(const PerReplica<Gradient>& gradients) const;
  // Returns which rows [first, second) of a global batch of `rows` rows belong to the replica with the rank `replica`.
  // If `rows` cannot be divided equally, the first replicas have one row more than the last ones.
  static std::pair<int64_t, int64_t> RowsOf(int64_t rows, int replica, int num_replicas);

  // Returns the keys of the replicas' group. Their instance_key is not set.
  ops::CollectiveKeys replica_keys() const;
  // Returns a number for the next model on this strategy: 0, 1, 2... A model uses it in the names of its variables,
  // because variables on a server are shared by name.
  int NextModel() const { return next_model_.fetch_add(1); }
  // Returns the meeting by which the programs of the processes agree on things outside of their graphs.
  WorkerMeeting& meeting() const { return *meeting_; }
  // Tells the other processes that this process does not continue. Their collectives and calls of the meeting that wait
  // for this process, and all later ones, fail with the code of `why` and a message that has `why` and the name of this
  // process. No process can use the strategy after that. If the processes have not met yet, waits some seconds at most
  // for their first meeting. Does nothing if there is one process.
  void Fail(const Status& why) const;

 private:
  friend class StrategyScope;
  ops::CollectiveKeys worker_keys() const;
  VariableInfo* Create(Graph& graph, const VariableMaker& next, const VariableRequest& request) const;
  // Returns the trainable variables that were made in the scope, or those of `given` if it is not empty. A partitioned
  // variable is replaced by its parts.
  std::vector<ops::Variable> VariablesOf(Graph& graph, const std::vector<ops::Variable>& given) const;

  const StrategyLayout layout_;
  const std::unique_ptr<const VariablePlacer> placer_;
  const std::unique_ptr<WorkerMeeting> meeting_;
  mutable std::atomic<int> next_model_{0};
};

using StrategyPtr = std::shared_ptr<const Strategy>;

}  // namespace cohort::distribute
