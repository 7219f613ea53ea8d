// Graph: nodes and the values that flow between them. A node is checked where it is added: op, attributes, dtypes and
// shapes; a mistake throws there with the node's name, its op, the shapes and the dtypes.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/graph/node.h"
#include "cohort/graph/node_builder.h"
#include "cohort/graph/scopes.h"

namespace cohort {

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

  NodeBuilder Op(std::string op, CallSite site = CallSite::Here()) { return NodeBuilder(*this, std::move(op), site); }
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
  friend class CallSiteScope;
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
    std::vector<CallSite> sites;
  };
  // Of the calling thread; what is opened is closed by the same thread.
  Scopes& scopes() COHORT_EXCLUDES(mu_);
  void DropEmptyScopes() COHORT_EXCLUDES(mu_);
  // Null where the calling thread has no scope open.
  const Scopes* FindScopes() const COHORT_EXCLUDES(mu_);
  // Of the innermost CallSiteScope of the calling thread.
  CallSite ScopedSite() const COHORT_EXCLUDES(mu_);
  std::string UniqueNameLocked(const std::string& name) COHORT_REQUIRES(mu_);
  // Marks `name` as taken, also where UniqueName has set it aside. Throws AlreadyExistsError where a node has it.
  void TakeName(const std::string& name, const std::string& op) COHORT_EXCLUDES(mu_);
  // Gives back the name of a node that was not added after all.
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
  std::weak_ptr<Library> shared_library_;  // of a body
  Graph* outer_ = nullptr;                 // while a body is made
  std::vector<CapturedValue> captures_;    // by the thread that makes the body
  std::vector<CapturedValue> copied_constants_;
  int64_t seed_ = 0;
  bool finalized_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort
