// Variable: a value that outlives steps. The class is a pointer to the graph's VariableInfo, which has the nodes of the
// variable: handle, shared read, initial value and initializer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/initializers.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

struct COHORT_EXPORT VariableOptions {
  std::string name = "Variable";  // made unique under the current name scope
  bool trainable = true;
  bool local = false;             // true: only this worker's, not saved, not trained, set by LocalVariablesInitializer
  DType dtype = DType::kInvalid;  // dtype of an Initializer's values; kInvalid: float32
};

// A variable of a graph. Cheap to copy. It can be used while its graph lives. If it refers to no variable (valid() is
// false), all functions except valid(), info() and == throw InvalidArgumentError.
class COHORT_EXPORT Variable {
 public:
  Variable() = default;
  explicit Variable(VariableInfo* info) : info_(info) {}
  // Adds a variable through the graph's open variable creators. It has the shape and dtype of the initial value.
  Variable(Graph& graph, Output initial_value, const VariableOptions& options = {}, CallSite site = CallSite::Here());
  Variable(Graph& graph, const Tensor& initial_value, const VariableOptions& options = {},
           CallSite site = CallSite::Here());
  Variable(Graph& graph, const Shape& shape, const Initializer& initializer, const VariableOptions& options = {},
           CallSite site = CallSite::Here());

  bool valid() const { return info_ != nullptr; }
  VariableInfo* info() const { return info_; }
  Graph& graph() const { return Get().value.graph(); }
  const std::string& name() const { return Get().name; }
  DType dtype() const { return Get().dtype; }
  const Shape& shape() const { return Get().shape; }
  bool trainable() const { return Get().trainable; }
  // Returns the handle. Throws FailedPreconditionError for a variable with parts(), because each part has a handle of
  // its own.
  Output handle() const;
  // Returns the result of the read node that all users of the variable share. The node runs at most once in a step.
  // It may run before or after an update of the same step, unless one depends on the other. To read the value after an
  // update, use Read.
  Output value() const { return Get().value; }
  operator Output() const { return value(); }
  // Adds a new read, which runs after the current control dependencies.
  Output Read(const NodeName& name = "ReadVariableOp") const;
  // Returns the rows with these indices, read on the variable's device (ResourceGather).
  Output Gather(const Operand& indices, const NodeName& name = "ResourceGather") const;
  // As Gather, but looks up each different index once. If the variable lies on another task, a row travels once for all
  // places that have its index, and so does its gradient. `indices` are int32 or int64.
  Output GatherUnique(Output indices, const NodeName& name = "ResourceGather") const;
  Output initial_value() const { return Get().initial_value; }
  // Returns the node that assigns the initial value. For a variable with parts(), each call adds a node that runs their
  // initializers.
  Node* initializer() const;
  Output is_initialized() const { return Get().is_initialized; }

  // If a creator has cut this variable along axis 0 (MakeVariableOfParts), returns the variables that have its rows, in
  // order. Returns an empty list for any other variable. Read, Gather and the Assign functions of this variable work on
  // all parts. Give its parts, not the variable itself, to an optimizer. (A Strategy does so.)
  std::vector<Variable> parts() const;

  // Add a node that changes the value. A number gets the variable's dtype, by the rules of operand.h. Throw
  // InvalidArgumentError if dtype or shape do not fit.
  Node* Assign(const Operand& value, const NodeName& name = "AssignVariableOp") const;
  Node* AssignAdd(const Operand& value, const NodeName& name = "AssignAddVariableOp") const;
  Node* AssignSub(const Operand& value, const NodeName& name = "AssignSubVariableOp") const;
  friend bool operator==(const Variable&, const Variable&) = default;

 private:
  const VariableInfo& Get() const {
    if (info_ == nullptr) [[unlikely]]
      FailEmpty();
    return *info_;
  }
  [[noreturn]] static void FailEmpty();
  VariableInfo* info_ = nullptr;
};

// Makes a variable called exactly `name` under the current name scope. Without an initializer it uses glorot_uniform
// for floating dtypes, and zeros for others. Throws AlreadyExistsError if the name is taken.
COHORT_EXPORT Variable GetVariable(Graph& graph, const std::string& name, const Shape& shape,
                                   DType dtype = DType::kFloat32, const Initializer& initializer = nullptr,
                                   bool trainable = true, CallSite site = CallSite::Here());

// Adds the nodes of one variable called exactly request.name, without calling any creator:
//   <name>                              VarHandleOp, placed by the device scopes (ReplicaDeviceSetter sees it)
//   <name>/Initializer/...              the initial value, placed by the device scopes
//   <name>/Assign, <name>/Read/ReadVariableOp, <name>/IsInitialized/VarIsInitializedOp   beside the handle
// Optimizers make slots with it. A creator must not replace a slot, because the slot belongs to exactly one variable.
COHORT_EXPORT VariableInfo* MakeVariable(Graph& graph, const VariableRequest& request);

// For creators that cut a variable along axis 0. Adds a variable that represents `parts`; the creator has made each of
// them with the `next` that it was given. The graph lists the new variable as local, as not trained, and without an
// initializer. So savers, initializers and optimizers see only its parts. Throws InvalidArgumentError unless the parts'
// rows make up the requested shape.
COHORT_EXPORT VariableInfo* MakeVariableOfParts(Graph& graph, const VariableRequest& request,
                                                const std::vector<VariableInfo*>& parts);

// Makes LocalVariablesInitializer run `node`, too. For what each worker has to make ready for itself and is not a
// variable, such as an iterator over a dataset.
COHORT_EXPORT void AddLocalInitializer(Node* node);

// GlobalVariablesInitializer returns a node that runs the initializers of all variables that are not local;
// LocalVariablesInitializer does so for all local variables, and runs the nodes of AddLocalInitializer. What is added
// later is not included.
COHORT_EXPORT Node* GlobalVariablesInitializer(Graph& graph, const NodeName& name = "init");
// The name that GlobalVariablesInitializer had in TensorFlow until 0.12.
inline Node* InitializeAllVariables(Graph& graph, const NodeName& name = "init") {
  return GlobalVariablesInitializer(graph, name);
}
COHORT_EXPORT Node* LocalVariablesInitializer(Graph& graph, const NodeName& name = "init_local");
// Returns the names of the variables that have no value when the step runs: string [n]. n is 0 if all have values.
// Variables that are added later are not checked.
COHORT_EXPORT Output ReportUninitializedVariables(Graph& graph,
                                                  const NodeName& name = "report_uninitialized_variables");

// Return the int64 scalar variable "global_step" (collection "global_step"), which is not trainable. If there is none,
// GetOrCreateGlobalStep makes it, and GetGlobalStep returns nullopt.
COHORT_EXPORT Variable GetOrCreateGlobalStep(Graph& graph);
COHORT_EXPORT std::optional<Variable> GetGlobalStep(Graph& graph);

}  // namespace cohort::ops
