// Update barriers: the updates of a step on one device as all-or-nothing sets. A pure pass.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Adds control edges to a placed graph, so that of the ops that change variables (OpDef::updates_variable)
// none runs before the inputs of all that belong to its set are there: a worker that dies between two
// gradients leaves the variables of a parameter server as they were before the step.
//
// A set: the updates of one device and one level, where the level of an update is the number of updates of
// that device on the longest path that leads to it, through other devices too. Where these barriers together
// would close a cycle through several devices, the updates of all devices are counted instead, which never
// does. Sets of one update, and sets whose members wait for the same inputs anyway, are left alone, as are
// inputs that are there from the start (constants, handles, fed values of the same device). One NoOp
// "_update_barrier" a set, placed on its device: `device_of_node` (by node id) grows with the graph.
//
// Returns the number of barriers. Throws InvalidArgumentError for a graph that has a cycle already.
int AddUpdateBarriers(Graph& graph, std::vector<std::string>& device_of_node);

}  // namespace cohort
