// Variables of TensorFlow 1 are ops whose output is a reference (VariableV2). Cohort has only variables with handles.
#pragma once

#include <string>

#include "cohort/proto/graph.pb.h"

namespace cohort {

// Makes a variable with a handle of each variable of `def` that is a reference:
// - Variable and VariableV2 become VarHandleOp. If they have no shared name, the variable is called as the node, with
//   `prefix` before it, which the nodes get when they are imported.
// - An op that changes or asks the variable becomes the one that takes a handle (Assign, AssignVariableOp).
// - An Identity of the reference becomes ReadVariableOp. Before every other op that takes the value, a node of this op
//   is put, called as that op with "/read_" and the number of the input.
// If an update's output was used as a value, the value is read after the update. Does nothing if there is no variable.
// Ops without a form for handles stay as they are.
void UseVariableHandles(const std::string& prefix, proto::GraphDef* def);

}  // namespace cohort
