// Joined updates: several updates of variables as one node, which a backend can make with less work than one by one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// The op of such a node. A graph pass of a backend adds it. Its inputs are those of the first update, then those of the
// second, and so on. Its attribute `op` is the op of each update, and `names` are the names of the nodes that were
// joined. It also has the attributes of the updates, which are the same for all of them. Attributes that their op does
// not have keep their defaults, and nothing reads them.
inline constexpr char kJoinedUpdates[] = "_JoinedUpdates";

// What a node of this op stands for.
struct JoinedUpdates {
  const OpDef* op;                 // of each update
  std::vector<std::string> names;  // one for each update
};

// Returns what the node stands for, or nullopt if it is a node of another op.
std::optional<JoinedUpdates> FindJoinedUpdates(const Node& node);

// Adds a node that stands for all of `updates`, with their control inputs. Requires: there is at least one; all have
// the same op and attributes, and none of them waits for another. The caller redirects control edges to the new node.
Node* JoinUpdates(Graph& graph, const std::vector<Node*>& updates);

}  // namespace cohort
