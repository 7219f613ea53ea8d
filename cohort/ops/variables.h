// Variable: a value that outlives steps, as programs use it. What it is made of - handle, shared read, initial value,
// initializer - is the graph's VariableInfo; this is a pointer to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/initializers.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

struct VariableOptions {
  std::string name = "Variable";  // made unique under the current name scope
  bool trainable = true;
  bool local = false;             // of this worker alone: not saved, not trained, set by LocalVariablesInitializer
  DType dtype = DType::kInvalid;  // of an Initializer's values; kInvalid: float32
};

// Cheap to copy; valid as long as its graph. Without a variable (valid() is false) all members but info() throw
// InvalidArgumentError.
class Variable {
 public:
  Variable() = default;
  explicit Variable(VariableInfo* info) : info_(info) {}
  // Adds a variable through the graph's open variable creators. Its shape and dtype are the initial value's.
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
  // Throws FailedPreconditionError for a variable with parts(), each of which has its own.
  Output handle() const;
  // The read that all users of the variable share: it runs when the step begins to need it, before the updates that
  // depend on it.
  Output value() const { return Get().value; }
  operator Output() const { return value(); }
  // A read of its own, after the current control dependencies.
  Output Read(const NodeName& name = "ReadVariableOp") const;
  // The rows with these indices, read where they are (ResourceGather).
  Output Gather(const Operand& indices, const NodeName& name = "ResourceGather") const;
  Output initial_value() const { return Get().initial_value; }
  // Assigns the initial value. Of a variable with parts() each call adds a node that runs their initializers.
  Node* initializer() const;
  Output is_initialized() const { return Get().is_initialized; }

  // The variables that this one stands for, if a creator has cut it along axis 0 (MakeVariableOfParts): its rows in
  // turn. Empty for any other variable. Reading, gathering and assigning work on all parts. Gradients and optimizers
  // take the parts.
  std::vector<Variable> parts() const;

  // A number gets the variable's dtype, by the rules of operand.h.
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

// A variable called exactly `name` under the current name scope. Without initializer: glorot_uniform for floating
// dtypes, zeros for others. Throws AlreadyExistsError when the name is taken.
Variable GetVariable(Graph& graph, const std::string& name, const Shape& shape, DType dtype = DType::kFloat32,
                     const Initializer& initializer = nullptr, bool trainable = true, CallSite site = CallSite::Here());

// The innermost maker: adds the nodes of one variable called exactly request.name, past all creators:
//   <name>                              VarHandleOp, placed by the device scopes (ReplicaDeviceSetter sees it)
//   <name>/Initializer/...              the initial value, placed by the device scopes
//   <name>/Assign, <name>/Read/ReadVariableOp, <name>/IsInitialized/VarIsInitializedOp   beside the handle
// Slots of optimizers are made with it, since they belong to one concrete variable.
VariableInfo* MakeVariable(Graph& graph, const VariableRequest& request);

// For creators that cut a variable along axis 0: adds one that stands for `parts`, each of which `next` has made. It is
// in the graph as a local variable that is not trained, so that savers, initializers and optimizers see its parts
// alone. Throws InvalidArgumentError unless the parts' rows make up the requested shape.
VariableInfo* MakeVariableOfParts(Graph& graph, const VariableRequest& request,
                                  const std::vector<VariableInfo*>& parts);

// Runs the initializers of all variables that are not local / that are local. Only those that there are by now.
Node* GlobalVariablesInitializer(Graph& graph, const NodeName& name = "init");
Node* LocalVariablesInitializer(Graph& graph, const NodeName& name = "init_local");
// Names of the variables, of those that there are by now, that have no value yet (string [n]; n = 0: all are ready).
Output ReportUninitializedVariables(Graph& graph, const NodeName& name = "report_uninitialized_variables");

// The int64 scalar variable "global_step" (collection "global_step"); not trainable.
Variable GetOrCreateGlobalStep(Graph& graph);
std::optional<Variable> GetGlobalStep(Graph& graph);

}  // namespace cohort::ops
