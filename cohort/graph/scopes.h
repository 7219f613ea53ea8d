// Scopes: objects that decide, as long as they exist, how nodes are added to a graph: on which device, with which name,
// after which nodes, beside which node, and how variables are made. A scope belongs to the thread that opened it.
// Scopes must end in the reverse order of their opening.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/node.h"

namespace cohort {

// Says that a variable is the rows [first_row, first_row + its own number of rows) of a variable that exists in parts
// only.
struct COHORT_EXPORT RowsOfVariable {
  std::string name;  // of the whole
  Shape shape;       // of the whole
  int64_t first_row = 0;
};

// The description of a variable in its graph. The functions of ops/variables.h make it, and the graph owns it. `value`
// reads the variable at the start of the step.
struct COHORT_EXPORT VariableInfo {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
  Output handle;                // output of the VarHandleOp
  Output value;                 // output of a ReadVariableOp
  Node* initializer = nullptr;  // the AssignVariableOp that stores the initial value
  Output initial_value;
  Output is_initialized;  // output of a VarIsInitializedOp
  bool trainable = true;
  bool local = false;                     // neither saved nor shared; the local init op of each worker initializes it
  std::optional<RowsOfVariable> rows_of;  // checkpoints have the whole under its name
};

// The description of a variable that is to be made.
struct COHORT_EXPORT VariableRequest {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::function<Output()> initial_value;  // adds the nodes of the initial value
  bool trainable = true;
  bool local = false;
  bool cut_is_decided = false;  // a creator has decided into how many parts it is cut; it is not cut again
};
using VariableMaker = std::function<VariableInfo*(const VariableRequest&)>;
// Makes a variable, or changes the request and calls `next`. `next` is the creator of the scope around this one. For
// the outermost scope, `next` is the maker, which makes the variable.
using VariableCreator = std::function<VariableInfo*(const VariableMaker& next, const VariableRequest&)>;

// The description of the node that is being added, for device functions.
struct COHORT_EXPORT NodeDraft {
  const std::string& op;
  const std::string& name;
  const std::string& device;  // the device so far: chosen by the node, and by scopes inside the function's scope
  DType dtype;                // of output 0, kInvalid if there is none; for VarHandleOp: of the variable
  Shape shape;                // of output 0, or of the variable
};
// Returns the device of the node. A DeviceScope calls it for each node to which the scope applies.
using DeviceFunction = std::function<std::string(const NodeDraft&)>;

// Sets the device of nodes that this thread adds. A device name has parts: job, replica, task, type and number. If
// scopes are nested, a part of the inner device wins, and a part that the inner device lacks comes from the outer
// device. A device function returns the whole device: it gets the inner device in NodeDraft::device, and must itself
// take over the parts that it wants to keep. The constructor throws InvalidArgumentError if `device` is not the name of
// a device.
class COHORT_EXPORT DeviceScope {
 public:
  DeviceScope(Graph& graph, const std::string& device);
  DeviceScope(Graph& graph, DeviceFunction function);
  // Hides all device scopes outside of this one (TensorFlow's tf.device(None)).
  DeviceScope(Graph& graph, std::nullptr_t);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;

 private:
  Graph& graph_;
};

// Puts `name` in front of the names of nodes that this thread adds: "a/MatMul". The name is made unique ("a", then
// "a_1"). A name that ends in "/" is not made unique and gets no outer prefix: "a/b/" gives "a/b/MatMul" in every
// scope. An empty name means no prefix. The constructor throws InvalidArgumentError if `name` has characters that no
// node name may have.
class COHORT_EXPORT NameScope {
 public:
  NameScope(Graph& graph, const std::string& name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  const std::string& prefix() const { return prefix_; }

 private:
  Graph& graph_;
  std::string prefix_;
};

// Makes nodes that this thread adds run after `nodes`. The constructor throws InvalidArgumentError if one of `nodes` is
// null or of another graph.
class COHORT_EXPORT ControlDependencies {
 public:
  ControlDependencies(Graph& graph, std::vector<Node*> nodes);
  // Hides all control dependencies outside of this scope.
  ControlDependencies(Graph& graph, std::nullptr_t);
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies&) = delete;

 private:
  Graph& graph_;
};

// Places nodes that this thread adds on the device of `node`, unless they request a device themselves. Device scopes do
// not apply to these nodes. The new nodes are colocated with the nodes with which `node` itself is colocated, or with
// `node` if there are none.
class COHORT_EXPORT ColocateWith {
 public:
  ColocateWith(Graph& graph, const Node& node);
  // Hides all colocations outside of this scope.
  ColocateWith(Graph& graph, std::nullptr_t);
  ~ColocateWith();
  ColocateWith(const ColocateWith&) = delete;

 private:
  Graph& graph_;
};

// Nodes that this thread adds get the line `site`, unless they have a line of the program already (NodeBuilder::At). If
// `site` is not a line of a program, the scope changes nothing. Functions that add several nodes open a scope with the
// line that called them.
class COHORT_EXPORT CallSiteScope {
 public:
  CallSiteScope(Graph& graph, CallSite site);
  ~CallSiteScope();
  CallSiteScope(const CallSiteScope&) = delete;

 private:
  Graph* graph_;  // null if nothing was changed
};

// Makes `creator` create the variables that this thread adds. Strategies use it to place and to copy variables.
class COHORT_EXPORT VariableCreatorScope {
 public:
  VariableCreatorScope(Graph& graph, VariableCreator creator);
  ~VariableCreatorScope();
  VariableCreatorScope(const VariableCreatorScope&) = delete;

 private:
  Graph& graph_;
};

}  // namespace cohort
