// Nodes that hold, read and change variables. The variable behind a handle lives in its task's ResourceManager and
// outlives sessions; ops/variables.h has the class that programs use.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Handle (resource scalar) of the variable (container, shared_name); empty: default container, the node's name.
COHORT_EXPORT Output VarHandleOp(Graph& graph, DType dtype, const Shape& shape, const std::string& shared_name = "",
                                 const std::string& container = "", const std::string& name = "VarHandleOp");
// All functions below stand on the device of `handle`. A number for a value gets the variable's dtype.
// The whole value.
// Throws FailedPreconditionError when it runs before the variable has a value.
COHORT_EXPORT Output ReadVariableOp(Output handle, const std::string& name = "ReadVariableOp");
COHORT_EXPORT Node* AssignVariableOp(Output handle, const Operand& value, const std::string& name = "AssignVariableOp");
COHORT_EXPORT Node* AssignAddVariableOp(Output handle, const Operand& value,
                                        const std::string& name = "AssignAddVariableOp");
COHORT_EXPORT Node* AssignSubVariableOp(Output handle, const Operand& value,
                                        const std::string& name = "AssignSubVariableOp");
COHORT_EXPORT Output VarIsInitializedOp(Output handle, const std::string& name = "VarIsInitializedOp");  // bool scalar
COHORT_EXPORT Output VariableShape(Output handle, DType out_type = DType::kInt32,
                                   const std::string& name = "VariableShape");
// Rows `indices` (int32/int64, any shape): shape indices.shape + variable.shape[1:]. Only rows leave the variable's
// device.
COHORT_EXPORT Output ResourceGather(Output handle, const Operand& indices, const std::string& name = "ResourceGather");
// variable[indices[i]] += / -= / = updates[i]; `updates` is a scalar or of shape indices.shape + variable.shape[1:].
// Repeated indices add up.
COHORT_EXPORT Node* ResourceScatterAdd(Output handle, const Operand& indices, const Operand& updates,
                                       const std::string& name = "ResourceScatterAdd");
COHORT_EXPORT Node* ResourceScatterSub(Output handle, const Operand& indices, const Operand& updates,
                                       const std::string& name = "ResourceScatterSub");
COHORT_EXPORT Node* ResourceScatterUpdate(Output handle, const Operand& indices, const Operand& updates,
                                          const std::string& name = "ResourceScatterUpdate");

// The dtype attribute of the VarHandleOp behind `handle`. Throws InvalidArgumentError for anything else.
COHORT_EXPORT DType VariableDType(Output handle);
// Its shape attribute.
COHORT_EXPORT Shape VariableShapeOf(Output handle);

}  // namespace cohort::ops
