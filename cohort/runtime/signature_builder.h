// SignatureBuilder: makes what a session runs out of a graph and a signature. It prunes, places and partitions the
// graph and registers each task's part there.
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

// Owned by the master of a session, which calls it from one thread at a time.
class SignatureBuilder {
 public:
  // `graph` must outlive it. Connects to the default task; throws as Session's constructor.
  SignatureBuilder(const Graph& graph, const SessionConfig& config, uint64_t session,
                   std::unique_ptr<ClusterView> view);

  // Throws what placement, the connection to a task and the making of kernels throw; each error names the node or task.
  std::unique_ptr<PreparedSignature> Build(const Signature& signature);
  // The tasks connected so far, by name.
  const std::map<std::string, std::shared_ptr<TaskClient>>& tasks() const { return tasks_; }

 private:
  struct Placed {
    std::unique_ptr<Graph> graph;
    std::vector<std::string> device_of_node;  // index: node id
    std::vector<Output> fetches;
  };
  // Index: number of a task in the order of its first partition.
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
