// Scopes: objects that, while they live, say how nodes are added to a graph - on which device, under which name, after
// which nodes, beside which node, and how variables are made. A scope belongs to the thread that opened it, and scopes
// end in the reverse order of their opening.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cohort/graph/node.h"

namespace cohort {

// A variable as the graph knows it; ops/state.h makes them. `value` is a read at the time of the step's start.
struct VariableInfo {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
  Output handle;                // VarHandleOp
  Output value;                 // ReadVariableOp
  Node* initializer = nullptr;  // AssignVariableOp of the initial value
  Output initial_value;
  Output is_initialized;  // VarIsInitializedOp
  bool trainable = true;
  bool local = false;  // neither saved nor shared: initialised by the local init op of each worker
};

struct VariableRequest {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::function<Output()> initial_value;  // adds the nodes of the initial value
  bool trainable = true;
  bool local = false;
};
using VariableMaker = std::function<VariableInfo*(const VariableRequest&)>;
// The creator of the innermost scope is called first; `next` is that of the scope around it, at last the maker.
using VariableCreator = std::function<VariableInfo*(const VariableMaker& next, const VariableRequest&)>;

// What a device function sees of the node being added.
struct NodeDraft {
  const std::string& op;
  const std::string& name;
  const std::string& device;  // as the scopes inside this one have left it
  DType dtype;                // of output 0; kInvalid where there is none. For VarHandleOp: of the variable
  Shape shape;                // likewise
};
// Returns the device of the node.
using DeviceFunction = std::function<std::string(const NodeDraft&)>;

// Nodes added in this scope by this thread get the device; of nested scopes the inner one wins field by field.
class DeviceScope {
 public:
  DeviceScope(Graph& graph, const std::string& device);
  DeviceScope(Graph& graph, DeviceFunction function);
  // Hides all device scopes outside (TensorFlow's tf.device(None)).
  DeviceScope(Graph& graph, std::nullptr_t);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;

 private:
  Graph& graph_;
};

// Prefixes the names of nodes with `name`, made unique ("a", then "a_1"). A name that ends in "/" is taken as it is,
// from the root; "" goes back to the root.
class NameScope {
 public:
  NameScope(Graph& graph, const std::string& name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  const std::string& prefix() const { return prefix_; }

 private:
  Graph& graph_;
  std::string prefix_;
};

// Nodes added in this scope run after `nodes`.
class ControlDependencies {
 public:
  ControlDependencies(Graph& graph, std::vector<Node*> nodes);
  // Hides all control dependencies outside.
  ControlDependencies(Graph& graph, std::nullptr_t);
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies&) = delete;

 private:
  Graph& graph_;
};

// Nodes added in this scope stand on the device of `node`, whatever the device scopes say. They are recorded as
// colocated with what `node` itself is colocated with, else with `node`.
class ColocateWith {
 public:
  ColocateWith(Graph& graph, const Node& node);
  // Hides all colocations outside.
  ColocateWith(Graph& graph, std::nullptr_t);
  ~ColocateWith();
  ColocateWith(const ColocateWith&) = delete;

 private:
  Graph& graph_;
};

// Nodes added in this scope get the line `site`, unless they are added by a line of the program itself. A scope whose
// line is not one of a program changes nothing. Functions that add several nodes open one with the line that called
// them.
class CallSiteScope {
 public:
  CallSiteScope(Graph& graph, CallSite site);
  ~CallSiteScope();
  CallSiteScope(const CallSiteScope&) = delete;

 private:
  Graph* graph_;  // null if nothing was changed
};

class VariableCreatorScope {
 public:
  VariableCreatorScope(Graph& graph, VariableCreator creator);
  ~VariableCreatorScope();
  VariableCreatorScope(const VariableCreatorScope&) = delete;

 private:
  Graph& graph_;
};

}  // namespace cohort
