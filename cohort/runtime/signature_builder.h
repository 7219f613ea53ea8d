// SignatureBuilder: prepares a signature of a session. It prunes, places and partitions the graph, and registers an
// executable on each task that has a part.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/runtime/placement/partitioner.h"
#include "cohort/runtime/prepared_signature.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/task_client.h"

namespace cohort {

// Prepares the signatures of one session. The session's master owns it and calls it from one thread at a time.
class SignatureBuilder {
 public:
  // `graph` and `config` must live longer than the builder. Connects to the default task. Throws what
  // Session's constructor throws.
  SignatureBuilder(const Graph& graph, const SessionConfig& config, uint64_t session,
                   std::unique_ptr<ClusterView> view);

  // Prepares a signature: may connect to tasks, and registers an executable on each task that has a part. Throws what
  // pruning, placement, ClusterView::Connect and TaskClient::Register throw, and InvalidArgumentError if the device
  // filters exclude a task that is needed. The error names the node or the task.
  std::unique_ptr<PreparedSignature> Build(const Signature& signature);
  // Returns the tasks to which there is a connection, by name.
  const std::map<std::string, std::shared_ptr<TaskClient>>& tasks() const { return tasks_; }

 private:
  struct Placed {
    std::unique_ptr<Graph> graph;
    std::vector<std::string> device_of_node;  // by node id
    std::vector<Output> fetches;
  };
  // The tasks of a graph, numbered in the order of their first partitions.
  struct TaskNumbers {
    std::vector<std::string> names;
    std::vector<int> of_partition;
  };
  using PartsByTask = std::map<std::string, PreparedSignature::Part>;

  std::shared_ptr<TaskClient> TaskFor(const DeviceName& task);
  std::vector<DeviceAttributes> DevicesFor(const Graph& graph);
  Placed PlaceGraph(PrunedGraph pruned);
  static void AddArgsPerDevice(Placed& placed, const std::vector<Node*>& args);
  static void AddRetvals(Placed& placed);
  static PartsByTask NumberFeedsAndFetches(const Graph& graph, const std::vector<std::string>& device_of_node);
  static TaskNumbers NumberTasks(const PartitionedGraph& cut);
  void RegisterParts(Placed placed, PreparedSignature& prepared);
  static void FindInlinePart(PreparedSignature& prepared);

  const Graph& graph_;
  const SessionConfig& config_;
  const uint64_t session_;
  const std::unique_ptr<ClusterView> view_;
  std::map<std::string, std::shared_ptr<TaskClient>> tasks_;
  int32_t next_executable_ = 0;
};

}  // namespace cohort
