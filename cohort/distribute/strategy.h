// Strategy: one program for many replicas that stay equal. One graph holds all replicas of this process, and each
// process has such a graph and a session of its own. The strategy knows the devices of the replicas, their numbers
// among all processes, and where variables live.
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
// examples/strategy_loop is the whole program. Keras models take a strategy in their options and do all this by
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

// One value for each copy of the variables in this process: one a replica, or a single one if replicas share variables.
template <typename T>
using PerCopy = std::vector<T>;

enum class Reduction { kSum, kMean };

// Who trains, on which devices.
struct COHORT_EXPORT StrategyLayout {
  std::string name;                  // "MirroredStrategy"
  std::vector<std::string> devices;  // of this process's replicas; "": wherever the scopes say
  std::vector<std::string> members;  // devices of all replicas of all processes, by rank
  int num_workers = 1;               // processes, with as many replicas each
  int worker = 0;                    // this one
  bool is_chief = true;
  CommunicationOptions communication;
  std::shared_ptr<Server> server;  // of this process; null: sessions have devices of their own
};

// The collectives that each replica adds while Run calls its function: the n-th of one is the n-th of all.
struct COHORT_EXPORT ReplicaCalls {
  std::vector<int64_t> instance_keys;
};

// What the function of Strategy::Run may know and do for the replica it is called for. For one thread.
class COHORT_EXPORT ReplicaContext {
 public:
  ReplicaContext(const Strategy& strategy, Graph& graph, int local, ReplicaCalls* calls)
      : strategy_(strategy), graph_(graph), local_(local), calls_(calls) {}
  ReplicaContext(const ReplicaContext&) = delete;

  const Strategy& strategy() const { return strategy_; }
  Graph& graph() const { return graph_; }
  int local_replica() const { return local_; }  // among those of this process
  int replica_id_in_sync_group() const;         // among all
  int num_replicas_in_sync() const;
  // The value reduced over all replicas of all processes; each has to make the same calls in the same order, and to
  // run what comes of them in the same steps. Numbers of any dtype that collectives take; equal shapes.
  Output AllReduce(Reduction reduction, Output value);
  // The mean of `values` over the elements of the whole global batch, as this replica's share: its sum, divided by the
  // number of elements of all replicas (an AllReduce of its own). So the shares of all replicas, and their gradients,
  // add up to those of one device with the whole batch, also if parts differ in size or have no rows.
  Output MeanOfGlobalBatch(Output values);
  // This replica's copy of a variable that was made in the strategy's scope, or the variable that all replicas share.
  ops::Variable Local(const ops::Variable& variable) const;
  // AllReduces so far.
  size_t calls() const { return next_call_; }

 private:
  const Strategy& strategy_;
  Graph& graph_;
  const int local_;
  ReplicaCalls* const calls_;
  size_t next_call_ = 0;
};

// While it lives, variables that this thread makes in the graph are the strategy's.
class [[nodiscard]] COHORT_EXPORT StrategyScope {
 public:
  // Throws FailedPreconditionError in the scope of another strategy.
  StrategyScope(const Strategy& strategy, Graph& graph);
  ~StrategyScope();
  StrategyScope(const StrategyScope&) = delete;

 private:
  std::unique_ptr<VariableCreatorScope> creator_;
  std::pair<const Graph*, const class Strategy*> entry_;
};

// Immutable but for the group of its processes, which forms itself when it is first needed. Thread-safe. Graphs that
// were made with it may outlive it; sessions on its target may not outlive its server.
class COHORT_EXPORT Strategy {
 public:
  // Throws InvalidArgumentError for a layout that does not fit together. strategies.h has the kinds.
  Strategy(StrategyLayout layout, std::unique_ptr<const VariablePlacer> placer);
  ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  const std::string& name() const { return layout_.name; }
  int num_replicas_in_sync() const { return static_cast<int>(layout_.members.size()); }
  int num_local_replicas() const { return static_cast<int>(layout_.devices.size()); }
  int first_replica() const { return layout_.worker * num_local_replicas(); }  // rank of the first one here
  int num_workers() const { return layout_.num_workers; }
  int worker() const { return layout_.worker; }
  // Writes checkpoints and summaries, speaks to the user.
  bool is_chief() const { return layout_.is_chief; }
  const std::vector<std::string>& devices() const { return layout_.devices; }
  const std::vector<std::string>& members() const { return layout_.members; }
  const CommunicationOptions& communication() const { return layout_.communication; }
  // Whether each replica has a copy of every variable. If not, the replicas of a process share them.
  bool has_copies() const { return placer_->makes_copies(); }
  int num_copies() const { return has_copies() ? num_local_replicas() : 1; }  // of each variable, in this process
  // Where what belongs to a copy stands: the replica's device, or the shared one.
  std::string DeviceOfCopy(int copy) const;
  // For Session: its target, and `config` with the devices that the replicas need.
  std::string session_target() const;
  SessionConfig session_config(SessionConfig config) const;
  // Opens a session on `graph` with these. Throws what Session throws.
  std::unique_ptr<Session> OpenSession(const Graph& graph, const SessionConfig& config = {}) const;

  // Variables made while the result lives are the strategy's: its VariablePlacer makes them, through the graph's
  // creators. Variables that are local (VariableOptions) are left alone.
  StrategyScope Scope(Graph& graph) const { return StrategyScope(*this, graph); }
  // The copy of replica `local` of this process; the variable itself if replicas share it. Throws
  // FailedPreconditionError for a variable that was not made in the scope.
  ops::Variable Local(const ops::Variable& variable, int local) const;
  // Calls `fn` once for each replica of this process, on its device, in a name scope of its own. Throws
  // FailedPreconditionError where the replicas do not make the same all-reduces.
  PerReplica<std::vector<Output>> Run(Graph& graph,
                                      const std::function<std::vector<Output>(ReplicaContext&)>& fn) const;
  // For functions with one result, a loss for instance.
  PerReplica<Output> Run(Graph& graph, const std::function<Output(ReplicaContext&)>& fn) const;
  // One value, on the first replica's device: over all replicas of all processes.
  Output Reduce(Reduction reduction, const PerReplica<Output>& values) const;
  // The sum over the replicas of this process alone, on the first one's device.
  Output SumHere(const PerReplica<Output>& values) const;
  // For each replica of this process the same tensors, summed over all replicas of all processes; dense, in buckets,
  // in the order of the graph, so that they leave while the backward pass goes on. Every node that is returned has to
  // run in a step if one of them does.
  PerReplica<std::vector<Output>> SumOverReplicas(const PerReplica<std::vector<Output>>& values) const;
  // Adds the update by which `optimizer` minimizes the sum of the replicas' losses over all replicas of all processes:
  // the loss of one device, if each loss is a share (ReplicaContext::MeanOfGlobalBatch). One loss for each replica of
  // this process, as Run returns them. Throws what ComputeGradients and ApplyGradients throw.
  struct MinimizeOptions {
    std::vector<ops::Variable> variables = {};  // none: all trainable ones that were made in the strategy's scopes
    ops::Variable global_step = {};             // made in the scope; 1 is added after the update
  };
  Node* Minimize(train::Optimizer& optimizer, const PerReplica<Output>& losses, const MinimizeOptions& options) const;
  Node* Minimize(train::Optimizer& optimizer, const PerReplica<Output>& losses) const;
  // The first half of Minimize: the gradients, summed over all replicas of all processes, for each copy of the
  // variables. A variable in parts is there with its parts. Between the halves gradients may be changed, alike for each
  // copy, by train::ClipByGlobalNorm for instance. Throws InvalidArgumentError if there is no variable,
  // FailedPreconditionError if the replicas' losses depend on different variables.
  PerCopy<std::vector<train::GradientAndVariable>> ComputeGradients(
      const PerReplica<Output>& losses, const std::vector<ops::Variable>& variables = {}) const;
  // The second half: updates all copies; the result has run when all this is done. A collective is one node at each
  // member, so that it has to run in the same steps in all processes. Throws what the optimizer throws.
  Node* ApplyGradients(train::Optimizer& optimizer, const PerCopy<std::vector<train::GradientAndVariable>>& gradients,
                       const ops::Variable& global_step = {}) const;

  // The sums of what the replicas bring, over all replicas of all processes.
  struct ReplicaSums {
    PerReplica<std::vector<Output>> values;
    PerReplica<std::vector<train::GradientAndVariable>> gradients;
  };
  // Sums dense values and gradients: values and dense gradients in buckets together (SumOverReplicas), sparse gradients
  // of large variables by their rows (GatherRows). Throws FailedPreconditionError if the replicas do not bring
  // gradients of the same kind for the same variables.
  ReplicaSums SumGradients(const PerReplica<std::vector<train::GradientAndVariable>>& gradients,
                           const PerReplica<std::vector<Output>>& values) const;
  // Whether GatherRows moves less than a dense sum is expected to: of a sparse gradient of a large variable.
  bool GathersRows(const Gradient& gradient, const ops::Variable& variable) const;
  // For each replica of this process the rows of a sparse gradient that all replicas of all processes bring, by rank.
  // Indices may repeat, and there may be rows of zeros of an index that some replica brings. Nodes run as those of
  // SumOverReplicas.
  PerReplica<Gradient> GatherRows(const PerReplica<Gradient>& gradients) const;
  // Of `rows` rows of a global batch those [first, second) of a replica (by rank): even, the first ones get more.
  static std::pair<int64_t, int64_t> RowsOf(int64_t rows, int replica, int num_replicas);

  // Keys of the replicas' group, without an instance.
  ops::CollectiveKeys replica_keys() const;
  // A number for each model on this strategy, from 0: variables on a server are shared by name.
  int NextModel() const { return next_model_.fetch_add(1); }
  // The group of the processes, for what their programs - not their graphs - have to agree on.
  WorkerMeeting& meeting() const { return *meeting_; }
  // Tells the other processes that this one does not go on: what they wait for and what they begin later fails, with
  // why and who. For good, for this strategy; nothing where there is one process. Throws nothing.
  void Fail(const Status& why) const;

 private:
  friend class StrategyScope;
  ops::CollectiveKeys worker_keys() const;
  VariableInfo* Create(Graph& graph, const VariableMaker& next, const VariableRequest& request) const;
  // The trainable ones that were made in the scope; those given, with their parts in place of whole variables.
  std::vector<ops::Variable> VariablesOf(Graph& graph, const std::vector<ops::Variable>& given) const;

  const StrategyLayout layout_;
  const std::unique_ptr<const VariablePlacer> placer_;
  const std::unique_ptr<WorkerMeeting> meeting_;
  mutable std::atomic<int> next_model_{0};
};

using StrategyPtr = std::shared_ptr<const Strategy>;

}  // namespace cohort::distribute
