// NodeBuilder: adds a node to a graph.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/graph/node.h"

namespace cohort {

// Collects the parts of one node: graph.Op("MatMul").Input(a).Input(b).Attr("transpose_a", true).Finish().
// Attributes that follow from inputs (T, N, ...) and those with defaults need not be given.
class NodeBuilder {
 public:
  NodeBuilder(Graph& graph, std::string op, CallSite site = CallSite::Here()) : graph_(&graph), op_(std::move(op)) {
    At(site);
  }
  // Made unique; "": the op's name. Also gives the node the line in `name`, as At.
  NodeBuilder& Name(const NodeName& name);
  NodeBuilder& ExactName(std::string name);  // without the name scope; AlreadyExistsError where it is taken
  NodeBuilder& Input(Output value);
  NodeBuilder& Inputs(const std::vector<Output>& values);  // an input that is a list
  // `_class` = {"loc:@name"} is the same as Colocate("name").
  NodeBuilder& Attr(std::string name, AttrValue value);
  NodeBuilder& Attrs(const AttrMap& attrs);
  NodeBuilder& Device(std::string device);
  NodeBuilder& Control(Node* node);
  NodeBuilder& Colocate(std::string node_name);
  // The line that added the node, if it is one of a program. Otherwise the node keeps the line that it has been given
  // before, or gets that of the innermost CallSiteScope.
  NodeBuilder& At(CallSite site) {
    if (site.IsOfProgram()) site_ = site;
    return *this;
  }
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
