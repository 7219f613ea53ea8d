// NodeBuilder: adds one node to a graph.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/node.h"

namespace cohort {

// Collects the parts of one node: graph.Op("MatMul").Input(a).Input(b).Attr("transpose_a", true).Finish(). Attributes
// that follow from the inputs (T, N, ...) and attributes with a default may be left out. Used once and by one thread;
// different threads may add nodes to one graph at the same time.
class COHORT_EXPORT NodeBuilder {
 public:
  NodeBuilder(Graph& graph, std::string op) : graph_(&graph), op_(std::move(op)) {}
  NodeBuilder& Name(std::string name);       // a base: the graph makes it unique; default: the op's name
  NodeBuilder& ExactName(std::string name);  // without name scopes; Finish throws AlreadyExistsError if it is taken
  NodeBuilder& Input(Output value);
  NodeBuilder& Inputs(const std::vector<Output>& values);  // for an input that is a list
  // Attr("_class", {"loc:@name"}) is the same as Colocate("name").
  NodeBuilder& Attr(std::string name, AttrValue value);
  NodeBuilder& Attrs(const AttrMap& attrs);
  NodeBuilder& Device(std::string device);
  NodeBuilder& Control(Node* node);
  NodeBuilder& Colocate(std::string node_name);
  NodeBuilder& IgnoreScopes();  // of this thread: device, colocation and control scopes; for imports and passes
  // Adds the node and returns it. Throws NotFoundError for an unknown op, InvalidArgumentError if a part does not fit,
  // and FailedPreconditionError if the graph is finalized.
  Node* Finish();
  // Adds the node and returns its output 0.
  cohort::Output Finish1() { return {Finish(), 0}; }
  // Gives `node` the collected inputs and attributes instead of its own. The op must be the same. The outputs of `node`
  // stay, and more outputs may follow them. Everything else of `node` stays. Gradients use this, for example to make a
  // loop keep the values that its gradient needs. Throws as Finish does. Throws also InvalidArgumentError if the first
  // outputs would have other dtypes.
  void Redefine(Node& node);

 private:
  friend class Graph;
  struct Arg {
    std::vector<cohort::Output> values;
    bool is_list;
  };
  // If an input is a value of a function's body, the node is added to that body. Inputs from graphs around the body are
  // captured.
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

}  // namespace cohort
