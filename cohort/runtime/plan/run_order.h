// RunOrder(): the order in which a plan runs its nodes.
#pragma once

#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Returns the nodes in an order in which each node comes after its data inputs and control inputs. Apart from that, the
// nodes have the order in which they were added, with one exception. A node that frees more memory than it needs runs
// as early as its inputs allow. It frees memory if it is the last to read large values; the gradient of a filter is an
// example. So memory is free earlier, and gradients can be sent earlier. Stateful ops keep their places. Equal graphs
// give equal orders. Throws InvalidArgumentError, with the names of its nodes, if there is a cycle.
std::vector<Node*> RunOrder(const Graph& graph);

}  // namespace cohort
