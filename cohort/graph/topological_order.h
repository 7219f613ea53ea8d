// Orders of a graph's nodes.
#pragma once

#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Every node after its data and control inputs, otherwise in the order of adding. Throws InvalidArgumentError that
// names the nodes of a cycle.
std::vector<Node*> TopologicalOrder(const Graph& graph);

}  // namespace cohort
