// NodeBuilder: adds one node to a graph.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/node.h"

namespace cohort {

// Collects the parts of one node: graph.Op("MatMul").Input(a).Input(b).Attr("transpose_a", true).Finish(). Attributes
// that follow from the inputs (T, N, ...) and attributes with a default may be left out. Only one thread may use a
// builder, for one node. Different threads may add nodes to one graph at the same time. If an input is a value of the
// body of a function that is being made, the node is added to that body.
class COHORT_EXPORT NodeBuilder {
 public:
  NodeBuilder(Graph& graph, std::string op, CallSite site = CallSite::Here()) : graph_(&graph), op_(std::move(op)) {
    At(site);
  }
  // Sets the name, which the graph makes unique. "" stands for the op's name. Also calls At with the line in `name`.
  NodeBuilder& Name(const NodeName& name);
  // Sets the whole name: name scopes do not change it. Finish throws AlreadyExistsError if the name is taken.
  NodeBuilder& ExactName(std::string name);
  NodeBuilder& Input(Output value);
  NodeBuilder& Inputs(const std::vector<Output>& values);  // for an input that is a list
  // Attr("_class", {"loc:@name"}) is the same as Colocate("name").
  NodeBuilder& Attr(std::string name, AttrValue value);
  NodeBuilder& Attrs(const AttrMap& attrs);
  NodeBuilder& Device(std::string device);
  NodeBuilder& Control(Node* node);
  NodeBuilder& Colocate(std::string node_name);
  // Gives the node the line `site`, if that is a line of a program. Otherwise the node keeps the line that it was given
  // before. A node without a line gets that of the innermost CallSiteScope.
  NodeBuilder& At(CallSite site) {
    if (site.IsOfProgram()) site_ = site;
    return *this;
  }
  // Adds the node as if this thread had no device, colocation and control scopes. Imports and passes use it.
  NodeBuilder& IgnoreScopes();
  // Adds the node and returns it. Throws NotFoundError for an unknown op, InvalidArgumentError if a part does not fit,
  // AlreadyExistsError if an ExactName is taken, FailedPreconditionError if the graph is finalized, and what the shape
  // rule of the op throws. If it throws, the graph has no new node.
  Node* Finish();
  // Adds the node and returns its output 0.
  cohort::Output Finish1() { return {Finish(), 0}; }
  // Gives `node` the collected inputs and attributes instead of its own. The op must be the same. The outputs that
  // `node` has keep their numbers and dtypes, and more outputs may follow them. Name, device, control inputs and line
  // of `node` stay. Gradients use this, for example to make a loop keep the values that its gradient needs. Throws as
  // Finish does. Throws also InvalidArgumentError if the first outputs would have other dtypes.
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
  CallSite site_;
  bool exact_name_ = false;
  bool ignore_scopes_ = false;
  std::vector<Arg> args_;
  AttrMap attrs_;
  std::string device_;
  std::vector<Node*> controls_;
  std::vector<std::string> colocate_;
};

}  // namespace cohort
