// Which nodes of a graph have to stand on one device.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Groups over `colocate_with` names (nodes that name the same absent node belong together too) and over
// resource handles: an op that takes a handle stands with the node that made it. A node that is bound to no
// other is a group of its own.
class ColocationGroups {
 public:
  explicit ColocationGroups(const Graph& graph);

  // Members in the order of their ids; groups in the order of their first members.
  const std::vector<std::vector<Node*>>& groups() const { return groups_; }
  // By node id.
  int GroupOf(const Node& node) const { return group_of_[static_cast<size_t>(node.id())]; }

 private:
  std::vector<std::vector<Node*>> groups_;
  std::vector<int> group_of_;
};

// The requested device of every node by id, completed from the requests of its group; of contradictory
// requests the first one counts. A session takes these from its whole graph before it prunes, so that a
// variable stands on the same device whichever of its users a step needs.
std::vector<std::string> ColocatedRequests(const Graph& graph);

}  // namespace cohort
