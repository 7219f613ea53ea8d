// Adds to the error of a step which lines of the program made the nodes that the error names.
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort {

// Returns `message` with ", made at src/train.cc:57" behind each description of a node (KernelContext::Describe), and
// behind each call of the functions that the node stands in. Nodes are found by name in `graph`, which the step runs,
// and in its functions; a node that is not there, or whose line is not known, gets nothing. It does not matter which
// task ran the step, because the message names the nodes.
std::string WithCallSites(const Graph& graph, const std::string& message);

}  // namespace cohort
