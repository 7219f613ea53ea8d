// Graph: nodes and the values that flow between them. Each node is checked when it is added: its op, attributes, dtypes
// and shapes. If something is wrong, the call that adds the node throws; the message names the node, its op, and the
// shapes and dtypes.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/mutex.h"
#include "cohort/graph/node.h"
#include "cohort/graph/node_builder.h"
#include "cohort/graph/scopes.h"

namespace cohort {

class Function;
// An argument of a function.
struct COHORT_EXPORT FunctionArg {
  DType dtype = DType::kInvalid;
  Shape shape = Shape::UnknownRank();
  std::string name;  // name of its node in the body; "" if it does not matter
  // If the argument is the handle of a variable: what is known of the variable.
  DType handle_dtype = DType::kInvalid;
  Shape handle_shape = Shape::UnknownRank();
};
// Adds the nodes of a function's body and returns the results. `args` are the values of the arguments.
using FunctionBody = std::function<std::vector<Output>(Graph& body, const std::vector<Output>& args)>;

// Owns its nodes, which are never removed. The code that made a graph owns it: the program, or a Function or a Plan of
// Cohort. Thread-safe: several threads may add nodes at the same time. Not thread-safe are set_seed, the body of a
// function while it is made (NewBody to CloseBody), and the methods of Node that change a node. A scope
// (graph/scopes.h) belongs to the thread that opened it.
class COHORT_EXPORT Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  NodeBuilder Op(std::string op, CallSite site = CallSite::Here()) { return NodeBuilder(*this, std::move(op), site); }
  // Returns the node, or nullptr if there is none of this name.
  Node* FindNode(std::string_view name) const;
  // Returns the value "node:1", or "node", which means "node:0". Throws NotFoundError if there is no such node, and
  // InvalidArgumentError if the text or the index is wrong.
  Output FindOutput(const std::string& name) const;
  int num_nodes() const;
  // Returns the nodes in the order in which they were added. So inputs come before the nodes that read them, unless a
  // node has got other inputs later (Node::ReplaceInput, NodeBuilder::Redefine). The returned list does not change when
  // nodes are added later.
  std::vector<Node*> nodes() const;
  // Returns a number that grows with every node that is added. A session uses it to notice that the graph has grown.
  int64_t version() const { return num_nodes(); }
  // After this call, to add a node or to redefine one throws FailedPreconditionError. Supervisor and MonitoredSession
  // call it.
  void Finalize();
  bool finalized() const;

  // Returns `name` with the prefix of the current name scope in front, and with a number behind if that name is taken.
  // Reserves the name. Adds no node.
  std::string UniqueName(const std::string& name);

  // The graph's seed, for random ops. This seed and the op's own seed decide the random numbers. If both are 0, the
  // numbers are different in each run of the program.
  void set_seed(int64_t seed) { seed_ = seed; }
  int64_t seed() const { return seed_; }

  // Adds a variable to the list variables(). The graph owns it.
  VariableInfo* AddVariable(VariableInfo info);
  std::vector<VariableInfo*> variables() const;  // in the order in which they were made
  // Makes a variable: calls the innermost variable creator that this thread has opened. Each creator may call the next
  // one further out; for the outermost one, the next one is `maker`. If the thread has opened no creator, calls `maker`
  // directly.
  VariableInfo* CreateVariable(const VariableMaker& maker, const VariableRequest& request);

  // The library: functions by name. A graph and the bodies of its functions share one library. DefineFunction makes a
  // function and throws as Function's constructor does (graph/function.h), and InvalidArgumentError if `body` uses
  // values of this graph that are not constants. DefineFunction and AddFunction throw AlreadyExistsError if the name is
  // taken.
  const Function& DefineFunction(const std::string& name, const std::vector<FunctionArg>& args,
                                 const FunctionBody& body);
  void AddFunction(std::shared_ptr<const Function> function);
  std::shared_ptr<const Function> FindFunction(std::string_view name) const;  // nullptr if there is none
  std::vector<std::shared_ptr<const Function>> functions() const;             // sorted by name
  // Returns `base`, with a number behind if the library has a function of that name. Does not reserve the name.
  std::string UniqueFunctionName(const std::string& base) const;
  // Returns an empty graph for the body of a function of this graph. This graph must live until CloseBody is called on
  // the body. The body shares this graph's library. Until CloseBody, nodes of the body may use values of this graph: a
  // constant is copied into the body, and every other value becomes a further argument of the function. captures()
  // returns the values that became arguments, with these arguments (outputs of Placeholders), in the order of their
  // first use.
  struct CapturedValue {
    Output outside;
    Output argument;
  };
  std::unique_ptr<Graph> NewBody();
  // Returns true if this graph is a body that is being made (NewBody to CloseBody) and `graph` is the graph for which
  // it is made. Returns true also if that graph is itself inside `graph`.
  bool IsInside(const Graph& graph) const;
  void CloseBody() { outer_ = nullptr; }
  const std::vector<CapturedValue>& captures() const { return captures_; }
  // Returns the argument for `value`, which must be a value of a graph around this body. Makes the argument if there is
  // none. If `value` is a constant, makes a copy in this body instead and returns it. Returns an empty Output if
  // `value` is of any other graph.
  Output Capture(const Output& value);

  void AddToCollection(const std::string& collection, Output value);
  std::vector<Output> collection(const std::string& collection) const;

 private:
  friend class NodeBuilder;
  friend class DeviceScope;
  friend class NameScope;
  friend class ControlDependencies;
  friend class ColocateWith;
  friend class CallSiteScope;
  friend class VariableCreatorScope;
  struct DeviceFrame {
    std::string device;  // used if `function` is empty
    DeviceFunction function;
    bool clear = false;  // hides the scopes around this one
  };
  struct Scopes {
    std::vector<DeviceFrame> devices;
    std::vector<std::string> names;            // whole prefixes: "a", "a/b"
    std::vector<std::vector<Node*>> controls;  // an element {nullptr} hides the elements before it
    std::vector<const Node*> colocate;         // a nullptr hides the elements before it
    std::vector<VariableCreator> creators;
    std::vector<CallSite> sites;
  };
  // Returns the scopes of the calling thread. A thread closes the scopes that it has opened.
  Scopes& scopes() COHORT_EXCLUDES(mu_);
  void DropEmptyScopes() COHORT_EXCLUDES(mu_);
  // Returns nullptr if the calling thread has no open scope.
  const Scopes* FindScopes() const COHORT_EXCLUDES(mu_);
  // Returns the line of the innermost CallSiteScope of the calling thread.
  CallSite ScopedSite() const COHORT_EXCLUDES(mu_);
  std::string UniqueNameLocked(const std::string& name) COHORT_REQUIRES(mu_);
  // Marks `name` as taken. It may be a name that UniqueName has reserved. Throws AlreadyExistsError if a node has it.
  void TakeName(const std::string& name, const std::string& op) COHORT_EXCLUDES(mu_);
  // Makes the name of a node free again, because the node was not added.
  void ReleaseName(const std::string& name) COHORT_EXCLUDES(mu_);
  void CheckNotFinal(const Node& node) const COHORT_REQUIRES(mu_);
  void CheckCanChange(const Node& node) const COHORT_EXCLUDES(mu_);
  static std::string ApplyDeviceScopes(const Scopes& scopes, const NodeDraft& draft);
  Node* Adopt(std::unique_ptr<Node> node) COHORT_EXCLUDES(mu_);
  struct Library;
  std::shared_ptr<Library> library() const;

  mutable Mutex mu_;
  std::vector<std::unique_ptr<Node>> nodes_ COHORT_GUARDED_BY(mu_);
  std::map<std::string, Node*, std::less<>> by_name_ COHORT_GUARDED_BY(mu_);
  std::map<std::string, int> name_counts_ COHORT_GUARDED_BY(mu_);
  std::map<std::thread::id, Scopes> scopes_ COHORT_GUARDED_BY(mu_);
  std::deque<VariableInfo> variables_ COHORT_GUARDED_BY(mu_);
  std::map<std::string, std::vector<Output>> collections_ COHORT_GUARDED_BY(mu_);
  std::shared_ptr<Library> own_library_;   // null in a body
  std::weak_ptr<Library> shared_library_;  // set in a body
  Graph* outer_ = nullptr;                 // the graph around this body, while the body is being made
  std::vector<CapturedValue> captures_;    // changed only by the thread that makes the body
  std::vector<CapturedValue> copied_constants_;
  int64_t seed_ = 0;
  bool finalized_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort
