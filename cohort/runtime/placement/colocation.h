// Colocation: which nodes of a graph must be on one device.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Divides the nodes of a graph into groups. All nodes of a group must be on one device. Two nodes are in one group
// - if one names the other in `colocate_with`;
// - if both name the same node, even if that node is not in the graph;
// - if one takes a resource handle that the other made.
// All other nodes are groups of one node. The groups are computed once and never change.
class ColocationGroups {
 public:
  explicit ColocationGroups(const Graph& graph);

  // Returns the groups in the order of their first members. The members of a group are in the order of their ids.
  const std::vector<std::vector<Node*>>& groups() const { return groups_; }
  // Returns the index of the node's group in groups().
  int GroupOf(const Node& node) const { return group_of_[static_cast<size_t>(node.id())]; }

 private:
  std::vector<std::vector<Node*>> groups_;
  std::vector<int> group_of_;
};

// Returns the requested device of each node, by node id. Parts that a node does not request come from other nodes of
// its group. If requests contradict each other, the first one counts. A session computes this for its whole graph
// before it prunes. So a variable is on the same device in every signature, even if a signature uses only some of the
// variable's nodes.
std::vector<std::string> ColocatedRequests(const Graph& graph);

}  // namespace cohort
