// Update barriers: make the updates of a step on one device an all-or-nothing set. A pure function on a graph.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Adds control edges to a placed graph. They have this effect on ops that change variables (OpDef::updates_variable):
// no update of a set runs before the inputs of all updates of the set are there. So if a worker dies between two
// gradients, the variables of a parameter server stay as they were before the step.
//
// A set has the updates of one device and one level. The level of an update is the largest number of updates of that
// device on a path that leads to it; the path may go through other devices. If these barriers would close a cycle
// through several devices, the level counts the updates of all devices instead, which never closes a cycle. There is no
// barrier for a set of one update, nor for a set whose members wait for the same inputs anyway. Inputs that exist from
// the start (constants, handles, values fed on the same device) are ignored. The barrier of a set is a NoOp called
// "_update_barrier" on the set's device. `device_of_node` (by node id) gets an element for each new node.
//
// Returns the number of barriers. Throws InvalidArgumentError if the graph has a cycle.
int AddUpdateBarriers(Graph& graph, std::vector<std::string>& device_of_node);

}  // namespace cohort
