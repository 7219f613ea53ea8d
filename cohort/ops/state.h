// Ops that hold, read and change variables. The variable of a handle lives in the ResourceManager of its task. Programs
// use the class Variable (ops/variables.h).
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns the handle (resource scalar) of the variable (container, shared_name). If `container` is empty, the default
// container is used. If `shared_name` is empty, the node's name is used.
COHORT_EXPORT Output VarHandleOp(Graph& graph, DType dtype, const Shape& shape, const std::string& shared_name = "",
                                 const std::string& container = "", const NodeName& name = "VarHandleOp");
// The nodes of all functions below are placed on the device of `handle`. If a value is a number of C++, it gets the
// variable's dtype.
// Returns the whole value. The step fails with FailedPreconditionError if the variable has no value yet.
COHORT_EXPORT Output ReadVariableOp(Output handle, const NodeName& name = "ReadVariableOp");
COHORT_EXPORT Node* AssignVariableOp(Output handle, const Operand& value, const NodeName& name = "AssignVariableOp");
COHORT_EXPORT Node* AssignAddVariableOp(Output handle, const Operand& value,
                                        const NodeName& name = "AssignAddVariableOp");
COHORT_EXPORT Node* AssignSubVariableOp(Output handle, const Operand& value,
                                        const NodeName& name = "AssignSubVariableOp");
COHORT_EXPORT Output VarIsInitializedOp(Output handle, const NodeName& name = "VarIsInitializedOp");  // bool scalar
COHORT_EXPORT Output VariableShape(Output handle, DType out_type = DType::kInt32,
                                   const NodeName& name = "VariableShape");
// Returns the rows `indices` (int32 or int64, any shape), with the shape indices.shape + variable.shape[1:]. Only these
// rows leave the variable's device. An index out of range fails the step with InvalidArgumentError.
COHORT_EXPORT Output ResourceGather(Output handle, const Operand& indices, const NodeName& name = "ResourceGather");
// Add a node that changes rows: variable[indices[i]] += updates[i] (Add), -= (Sub), or = (Update). `updates` is a
// scalar, or has the shape indices.shape + variable.shape[1:]. With Add and Sub, all updates of a repeated index are
// applied. With Update, the last one stays.
COHORT_EXPORT Node* ResourceScatterAdd(Output handle, const Operand& indices, const Operand& updates,
                                       const NodeName& name = "ResourceScatterAdd");
COHORT_EXPORT Node* ResourceScatterSub(Output handle, const Operand& indices, const Operand& updates,
                                       const NodeName& name = "ResourceScatterSub");
COHORT_EXPORT Node* ResourceScatterUpdate(Output handle, const Operand& indices, const Operand& updates,
                                          const NodeName& name = "ResourceScatterUpdate");

// Returns the dtype of the variable of `handle`. Throws InvalidArgumentError if `handle` is not a resource, or if the
// dtype is not known.
COHORT_EXPORT DType VariableDType(Output handle);
// Returns the shape of the variable of `handle`, or UnknownRank if it is not known. Requires: `handle` is valid.
COHORT_EXPORT Shape VariableShapeOf(Output handle);

}  // namespace cohort::ops
