// Graph: nodes and the values that flow between them. A node is checked where it is added: op, attributes, dtypes and
// shapes; a mistake throws there with the node's name, its op, the shapes and the dtypes.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/graph/attr_value.h"
#include "cohort/graph/op_def.h"

namespace cohort {

class Graph;
class Node;

// The value at output `index` of a node. Cheap to copy; valid as long as its graph.
struct Output {
  Node* node = nullptr;
  int index = 0;

  bool valid() const { return node != nullptr; }
  DType dtype() const;
  const Shape& shape() const;  // as far as it is known while the graph is built
  Graph& graph() const;
  std::string name() const;  // "node:0"
  friend bool operator==(const Output&, const Output&) = default;
};

class Node {
 public:
  int id() const { return id_; }
  const std::string& name() const { return name_; }
  const OpDef& op() const { return *op_; }
  const std::string& op_name() const { return op_->name(); }
  Graph& graph() const { return *graph_; }
  const std::vector<Output>& inputs() const { return inputs_; }
  const Output& input(int i) const { return inputs_.at(static_cast<size_t>(i)); }
  const std::vector<Node*>& control_inputs() const { return control_inputs_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(output_dtypes_.size()); }
  Output output(int i) const { return {const_cast<Node*>(this), i}; }
  DType output_dtype(int i) const { return output_dtypes_.at(static_cast<size_t>(i)); }
  const Shape& output_shape(int i) const { return output_shapes_.at(static_cast<size_t>(i)); }
  // Which ArgDef of the op the i-th input or output belongs to, lists unrolled.
  const ArgDef& input_arg(int i) const { return op_->inputs().at(input_args_.at(static_cast<size_t>(i))); }
  const ArgDef& output_arg(int i) const { return op_->outputs().at(output_args_.at(static_cast<size_t>(i))); }
  const AttrMap& attrs() const { return attrs_; }
  bool has_attr(std::string_view name) const { return attrs_.find(name) != attrs_.end(); }
  // Throws InvalidArgumentError where the attribute is missing or of another type.
  template <typename T>
  const T& attr(std::string_view name) const {
    const auto it = attrs_.find(name);
    const T* value = it == attrs_.end() ? nullptr : it->second.get<T>();
    if (value == nullptr) FailAttr(name);
    return *value;
  }
  // The requested device ("" = anywhere); names of nodes it has to stand beside.
  const std::string& device() const { return device_; }
  void set_device(std::string device) { device_ = std::move(device); }
  const std::vector<std::string>& colocate_with() const { return colocate_with_; }

  void AddControlInput(Node* node);
  // Rewiring, for passes over a graph of their own and for gradients; keeps dtype, throws InvalidArgumentError
  // otherwise.
  void ReplaceInput(int i, Output value);
  void SetAttr(std::string_view name, AttrValue value) { attrs_.insert_or_assign(std::string(name), std::move(value)); }
  void ReplaceControlInputs(std::vector<Node*> nodes) { control_inputs_ = std::move(nodes); }
  // "MatMul node 'dense/MatMul' (inputs: float32[?,4], float32[3,2])".
  std::string Describe() const;

 private:
  friend class Graph;
  friend class NodeBuilder;
  [[noreturn]] void FailAttr(std::string_view name) const;

  Graph* graph_ = nullptr;
  int id_ = 0;
  std::string name_;
  const OpDef* op_ = nullptr;
  AttrMap attrs_;
  std::vector<Output> inputs_;
  std::vector<Node*> control_inputs_;
  std::vector<size_t> input_args_;
  std::vector<size_t> output_args_;
  std::vector<DType> output_dtypes_;
  std::vector<Shape> output_shapes_;
  std::string device_;
  std::vector<std::string> colocate_with_;
};

// Collects the parts of one node: graph.Op("MatMul").Input(a).Input(b).Attr("transpose_a", true).Finish().
// Attributes that follow from inputs (T, N, ...) and those with defaults need not be given.
class NodeBuilder {
 public:
  NodeBuilder(Graph& graph, std::string op) : graph_(&graph), op_(std::move(op)) {}
  NodeBuilder& Name(std::string name);       // made unique; default: the op's name
  NodeBuilder& ExactName(std::string name);  // without the name scope; AlreadyExistsError where it is taken
  NodeBuilder& Input(Output value);
  NodeBuilder& Inputs(const std::vector<Output>& values);  // an input that is a list
  // `_class` = {"loc:@name"} is the same as Colocate("name").
  NodeBuilder& Attr(std::string name, AttrValue value);
  NodeBuilder& Attrs(const AttrMap& attrs);
  NodeBuilder& Device(std::string device);
  NodeBuilder& Control(Node* node);
  NodeBuilder& Colocate(std::string node_name);
  NodeBuilder& IgnoreScopes();  // neither device scopes nor control dependencies (imports, passes)
  // Throws NotFoundError (op), InvalidArgumentError (all that does not fit).
  Node* Finish();
  cohort::Output Finish1() { return {Finish(), 0}; }
  // Gives `node`, of the same op, these inputs and attributes instead of its own, as when a loop is made to keep what
  // its gradient needs. Its outputs stay and more may follow them; so does the rest of the node. Throws as Finish,
  // InvalidArgumentError where the first outputs would be of other dtypes, FailedPreconditionError in a finalized
  // graph.
  void Redefine(Node& node);

 private:
  friend class Graph;
  struct Arg {
    std::vector<cohort::Output> values;
    bool is_list;
  };
  // Where an input is a value of a function's body: the node belongs there. Values of graphs around it are captured.
  void EnterBody();
  void ChooseName(Node& node);
  void CollectInputs(const OpDef& op, Node& node);
  void TakeColocation();
  void InferAttrs(const OpDef& op, Node& node);
  void CheckAttrs(const OpDef& op, Node& node);
  void ResolveOutputs(const OpDef& op, Node& node);
  void ApplyScopes(Node& node);

  Graph* graph_;
  std::string op_;
  std::string name_;
  bool exact_name_ = false;
  bool ignore_scopes_ = false;
  std::vector<Arg> args_;
  AttrMap attrs_;
  std::string device_;
  std::vector<Node*> controls_;
  std::vector<std::string> colocate_;
};

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

class Function;
struct FunctionArg {
  DType dtype = DType::kInvalid;
  Shape shape = Shape::UnknownRank();
  std::string name;  // of the argument's node in the body; "" where it does not matter
  // Of a resource: what is known of the variable behind it.
  DType handle_dtype = DType::kInvalid;
  Shape handle_shape = Shape::UnknownRank();
};
// Adds the nodes of a function's body and returns its results; `args` are the values of its arguments.
using FunctionBody = std::function<std::vector<Output>(Graph& body, const std::vector<Output>& args)>;

// Thread-safe for adding nodes. Scopes belong to the thread that opened them.
class Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  NodeBuilder Op(std::string op) { return NodeBuilder(*this, std::move(op)); }
  // Null where there is none.
  Node* FindNode(std::string_view name) const;
  // "node", "node:1". Throws NotFoundError / InvalidArgumentError.
  Output FindOutput(const std::string& name) const;
  int num_nodes() const;
  // In the order of adding (inputs before consumers). Not to be held while nodes are added.
  std::vector<Node*> nodes() const;
  // Grows with every node; a session uses it to see that a graph has changed.
  int64_t version() const { return num_nodes(); }
  // From now on adding a node throws FailedPreconditionError (Supervisor, MonitoredSession).
  void Finalize();
  bool finalized() const;

  // `name` made unique in the graph and under the current name scope, without adding a node.
  std::string UniqueName(const std::string& name);

  // Seed of the random ops made without one; with the op's own seed it decides the numbers (0, 0 = random).
  void set_seed(int64_t seed) { seed_ = seed; }
  int64_t seed() const { return seed_; }

  VariableInfo* AddVariable(VariableInfo info);
  std::vector<VariableInfo*> variables() const;  // in the order of creation
  // Runs `request` through the open variable creators down to `maker`.
  VariableInfo* CreateVariable(const VariableMaker& maker, const VariableRequest& request);

  // The library: functions by name, one for a graph and the bodies of its functions. DefineFunction makes one
  // (graph/function.h says what it throws); both throw AlreadyExistsError for a name that is taken.
  const Function& DefineFunction(const std::string& name, const std::vector<FunctionArg>& args,
                                 const FunctionBody& body);
  void AddFunction(std::shared_ptr<const Function> function);
  std::shared_ptr<const Function> FindFunction(std::string_view name) const;  // null where there is none
  std::vector<std::shared_ptr<const Function>> functions() const;             // by name
  // `base`, with a number where the library has a function of that name.
  std::string UniqueFunctionName(const std::string& base) const;
  // An empty graph for the body of a function of this graph, which must outlive its making: it has this one's library
  // and, until CloseBody, nodes that are added to it may use values of this graph: a constant is copied, anything else
  // becomes a further argument. `captures` are those values and their arguments, Placeholders, in the order of use.
  struct CapturedValue {
    Output outside;
    Output argument;
  };
  std::unique_ptr<Graph> NewBody();
  // Whether this is a body that is being made, of `graph` or of one inside it.
  bool IsInside(const Graph& graph) const;
  void CloseBody() { outer_ = nullptr; }
  const std::vector<CapturedValue>& captures() const { return captures_; }
  // The argument for `value`, of a graph around this body; made where there is none. An empty Output for a value of any
  // other graph.
  Output Capture(const Output& value);

  void AddToCollection(const std::string& collection, Output value);
  std::vector<Output> collection(const std::string& collection) const;

 private:
  friend class NodeBuilder;
  friend class DeviceScope;
  friend class NameScope;
  friend class ControlDependencies;
  friend class ColocateWith;
  friend class VariableCreatorScope;
  struct DeviceFrame {
    std::string device;  // used where `function` is empty
    DeviceFunction function;
    bool clear = false;  // hides the frames outside
  };
  struct Scopes {
    std::vector<DeviceFrame> devices;
    std::vector<std::string> names;            // full prefixes: "a", "a/b"
    std::vector<std::vector<Node*>> controls;  // a frame {nullptr} hides those outside
    std::vector<const Node*> colocate;         // a null hides those outside
    std::vector<VariableCreator> creators;
  };
  // Of the calling thread; what is opened is closed by the same thread.
  Scopes& scopes() EXCLUDES(mu_);
  void DropEmptyScopes() EXCLUDES(mu_);
  // Null where the calling thread has no scope open.
  const Scopes* FindScopes() const EXCLUDES(mu_);
  std::string UniqueNameLocked(const std::string& name) REQUIRES(mu_);
  // Marks `name` as taken, also where UniqueName has set it aside. Throws AlreadyExistsError where a node has it.
  void TakeName(const std::string& name, const std::string& op) EXCLUDES(mu_);
  // Gives back the name of a node that was not added after all.
  void ReleaseName(const std::string& name) EXCLUDES(mu_);
  void CheckNotFinal(const Node& node) const REQUIRES(mu_);
  void CheckCanChange(const Node& node) const EXCLUDES(mu_);
  static std::string ApplyDeviceScopes(const Scopes& scopes, const NodeDraft& draft);
  Node* Adopt(std::unique_ptr<Node> node) EXCLUDES(mu_);
  struct Library;
  std::shared_ptr<Library> library() const;

  mutable Mutex mu_;
  std::vector<std::unique_ptr<Node>> nodes_ GUARDED_BY(mu_);
  std::map<std::string, Node*, std::less<>> by_name_ GUARDED_BY(mu_);
  std::map<std::string, int> name_counts_ GUARDED_BY(mu_);
  std::map<std::thread::id, Scopes> scopes_ GUARDED_BY(mu_);
  std::deque<VariableInfo> variables_ GUARDED_BY(mu_);
  std::map<std::string, std::vector<Output>> collections_ GUARDED_BY(mu_);
  std::shared_ptr<Library> own_library_;   // null in a body
  std::weak_ptr<Library> shared_library_;  // of a body
  Graph* outer_ = nullptr;                 // while a body is made
  std::vector<CapturedValue> captures_;    // by the thread that makes the body
  std::vector<CapturedValue> copied_constants_;
  int64_t seed_ = 0;
  bool finalized_ GUARDED_BY(mu_) = false;
};

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

class VariableCreatorScope {
 public:
  VariableCreatorScope(Graph& graph, VariableCreator creator);
  ~VariableCreatorScope();
  VariableCreatorScope(const VariableCreatorScope&) = delete;

 private:
  Graph& graph_;
};

}  // namespace cohort
