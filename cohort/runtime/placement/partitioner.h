// Partitioner: cuts a placed graph into one graph a device. A pure function.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/device/rendezvous.h"
#include "cohort/graph/graph.h"

namespace cohort {

// A value that one partition sends and another one receives, once a step.
struct CrossingEdge {
  EdgeId id = 0;  // its index in PartitionedGraph::edges
  int src_partition = 0;
  int dst_partition = 0;
  std::string tensor_name;  // "node:0", "^node" for a control edge
  DType dtype = DType::kInvalid;
  bool control = false;  // carries a dummy scalar
};

struct Partition {
  std::string device;
  std::unique_ptr<Graph> graph;  // nodes under their own names, besides _Send and _Recv
};

struct PartitionedGraph {
  std::vector<Partition> partitions;  // in the order in which the devices are first needed
  std::vector<CrossingEdge> edges;
};

// Splits `graph`, all of whose nodes stand on the devices `device_of_node` (full names, by node id). A value
// is sent once to each other device that uses it. A control edge uses the value of its source that crosses to
// the same device anyway; only where there is none a dummy scalar is sent, once a source node and device. A
// Const that waits for nothing is not sent but made part of each partition that uses it. Throws
// InvalidArgumentError for a resource handle that would have to cross, and for a cycle.
PartitionedGraph PartitionByDevice(const Graph& graph, const std::vector<std::string>& device_of_node);

}  // namespace cohort
