// Nodes that hold, read and change variables. The variable behind a handle lives in its task's ResourceManager and
// outlives sessions; ops/variables.h has the class that programs use.
#pragma once

#include <string>

#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Handle (resource scalar) of the variable (container, shared_name); empty: default container, the node's name.
Output VarHandleOp(Graph& graph, DType dtype, const Shape& shape, const std::string& shared_name = "",
                   const std::string& container = "", const NodeName& name = "VarHandleOp");
// All functions below stand on the device of `handle`. A number for a value gets the variable's dtype.
// The whole value.
// Throws FailedPreconditionError when it runs before the variable has a value.
Output ReadVariableOp(Output handle, const NodeName& name = "ReadVariableOp");
Node* AssignVariableOp(Output handle, const Operand& value, const NodeName& name = "AssignVariableOp");
Node* AssignAddVariableOp(Output handle, const Operand& value, const NodeName& name = "AssignAddVariableOp");
Node* AssignSubVariableOp(Output handle, const Operand& value, const NodeName& name = "AssignSubVariableOp");
Output VarIsInitializedOp(Output handle, const NodeName& name = "VarIsInitializedOp");  // bool scalar
Output VariableShape(Output handle, DType out_type = DType::kInt32, const NodeName& name = "VariableShape");
// Rows `indices` (int32/int64, any shape): shape indices.shape + variable.shape[1:]. Only rows leave the variable's
// device.
Output ResourceGather(Output handle, const Operand& indices, const NodeName& name = "ResourceGather");
// variable[indices[i]] += / -= / = updates[i]; `updates` is a scalar or of shape indices.shape + variable.shape[1:].
// Repeated indices add up.
Node* ResourceScatterAdd(Output handle, const Operand& indices, const Operand& updates,
                         const NodeName& name = "ResourceScatterAdd");
Node* ResourceScatterSub(Output handle, const Operand& indices, const Operand& updates,
                         const NodeName& name = "ResourceScatterSub");
Node* ResourceScatterUpdate(Output handle, const Operand& indices, const Operand& updates,
                            const NodeName& name = "ResourceScatterUpdate");

// The dtype attribute of the VarHandleOp behind `handle`. Throws InvalidArgumentError for anything else.
DType VariableDType(Output handle);
// Its shape attribute.
Shape VariableShapeOf(Output handle);

}  // namespace cohort::ops
