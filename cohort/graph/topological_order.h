// The order in which the nodes of a graph can run.
#pragma once

#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Returns the nodes so that each node comes after its data inputs and control inputs. Apart from that, the nodes have
// the order in which they were added. Throws InvalidArgumentError, with the names of its nodes, if there is a cycle.
std::vector<Node*> TopologicalOrder(const Graph& graph);

}  // namespace cohort
