// The order in which a plan's nodes run where nothing else decides.
#pragma once

#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Every node after its data and control inputs, otherwise in the order of adding; but a node that is the last to read
// values that are larger than what it makes (a filter's gradient, say) comes as early as its inputs allow, so that they
// are forgotten and its result, a gradient, can leave. Stateful ops keep their places. Equal graphs give equal
// orders. Throws InvalidArgumentError that names the nodes of a cycle.
std::vector<Node*> RunOrder(const Graph& graph);

}  // namespace cohort
