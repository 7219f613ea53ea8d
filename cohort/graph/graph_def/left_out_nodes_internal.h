// Parts of a GraphDef that its reader could not have.
#pragma once

#include <functional>
#include <string_view>

#include "cohort/proto/graph.pb.h"

namespace cohort {

// Removes the functions with a node whose op `has_op` refuses. Then removes the nodes whose op it refuses, those that
// name a removed function, and those that need the value of a removed node. A node that only has to run after removed
// ones, or that is colocated with one, stays. Requires: the inputs of a node come before it.
void LeaveOutNodes(const std::function<bool(std::string_view op)>& has_op, proto::GraphDef* def);

}  // namespace cohort
