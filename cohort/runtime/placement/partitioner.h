// Partitioner: divides a placed graph into one graph for each device. A pure function.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/device/rendezvous.h"
#include "cohort/graph/graph.h"

namespace cohort {

// An edge between two partitions. In each step the source partition sends the value of the edge once, and the
// destination partition receives it.
struct CrossingEdge {
  EdgeId id = 0;  // its index in PartitionedGraph::edges
  int src_partition = 0;
  int dst_partition = 0;
  std::string tensor_name;  // "node:0", or "^node" for a control edge
  DType dtype = DType::kInvalid;
  bool control = false;  // a control edge: the value is a scalar without meaning
};

// The part of a graph that runs on one device.
struct Partition {
  std::string device;
  std::unique_ptr<Graph> graph;  // with the names of the original nodes; _Send and _Recv nodes are added
};

// The result of PartitionByDevice.
struct PartitionedGraph {
  std::vector<Partition> partitions;  // in the order in which the devices are first used
  std::vector<CrossingEdge> edges;
};

// Divides `graph`. `device_of_node` gives the full device name of each node, by node id. A value is sent once to each
// other device that uses it. If a control edge leads to another device, its destination node waits there for a value:
// for an output of the source node if one is sent to this device, otherwise for a scalar without meaning. Such a scalar
// is sent once for each source node and destination device. A Const without control inputs is not sent; each partition
// that uses it gets a copy. Each graph gets the library functions that its nodes call. Throws InvalidArgumentError if a
// handle (of a resource or a list) would have to be sent, or if there is a cycle.
PartitionedGraph PartitionByDevice(const Graph& graph, const std::vector<std::string>& device_of_node);

}  // namespace cohort
