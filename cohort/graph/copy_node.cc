#include "cohort/graph/copy_node.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/function.h"
#include "cohort/graph/topological_order.h"

namespace cohort {

namespace {

void FillIn(NodeBuilder& builder, const Node& node, const std::vector<Output>& inputs,
            const std::vector<Node*>& control_inputs) {
  builder.Attrs(node.attrs()).Device(node.device()).IgnoreScopes().At(node.site());
  for (const ArgDef& arg : node.op().inputs()) {
    std::vector<Output> values;
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (&node.input_arg(i) == &arg) values.push_back(inputs.at(static_cast<size_t>(i)));
    }
    if (arg.number_attr.empty() && arg.type_list_attr.empty()) {
      builder.Input(values.at(0));
    } else {
      builder.Inputs(values);
    }
  }
  for (Node* control : control_inputs) builder.Control(control);
}

}  // namespace

Node* CopyNode(Graph& graph, const Node& node, const std::vector<Output>& inputs,
               const std::vector<Node*>& control_inputs) {
  NodeBuilder builder = graph.Op(node.op_name());
  builder.ExactName(node.name());
  FillIn(builder, node, inputs, control_inputs);
  for (const std::string& other : node.colocate_with()) builder.Colocate(other);
  return builder.Finish();
}

Node* CopyIntoBody(Graph& graph, const Node& node, const std::vector<Output>& inputs,
                   const std::vector<Node*>& control_inputs) {
  NodeBuilder builder = graph.Op(node.op_name());
  builder.Name(node.name());
  FillIn(builder, node, inputs, control_inputs);
  return builder.Finish();
}

Node* CopyBeside(const Node& node, const std::vector<Output>& inputs, const std::vector<Node*>& control_inputs,
                 const AttrMap& other_attrs) {
  NodeBuilder builder = node.graph().Op(node.op_name());
  builder.Name(node.name());
  FillIn(builder, node, inputs, control_inputs);
  builder.Attrs(other_attrs);
  for (const std::string& other : node.colocate_with()) builder.Colocate(other);
  return builder.Finish();
}

std::vector<std::string> CalledFunctions(const Node& node) {
  std::vector<std::string> names;
  for (const AttrDef& attr : node.op().attrs()) {
    if (attr.kind == AttrKind::kFunc) names.push_back(node.attr<FunctionName>(attr.name).name);
  }
  return names;
}

void TakeFunctions(const Graph& from, Graph& to) {
  std::vector<std::shared_ptr<const Function>> taken;
  const auto take = [&](const Graph& graph) {
    for (const Node* node : graph.nodes()) {
      for (const std::string& name : CalledFunctions(*node)) {
        if (to.FindFunction(name) != nullptr) continue;
        std::shared_ptr<const Function> function = from.FindFunction(name);
        if (function == nullptr) {
          throw NotFoundError(
              StrCat("[graph] ", node->Describe(), " calls the function '", name, "', which the library lacks"));
        }
        to.AddFunction(function);
        taken.push_back(std::move(function));
      }
    }
  };
  take(to);
  for (size_t i = 0; i < taken.size(); ++i) {
    const std::shared_ptr<const Function> function = taken[i];
    take(function->graph());
  }
}

void AddFunctionAndCallees(const std::shared_ptr<const Function>& function, Graph& to) {
  if (to.FindFunction(function->name()) == function) return;
  to.AddFunction(function);
  for (const Node* node : function->graph().nodes()) {
    for (const std::string& name : CalledFunctions(*node)) {
      const std::shared_ptr<const Function> callee = function->graph().FindFunction(name);
      if (callee != nullptr) AddFunctionAndCallees(callee, to);
    }
  }
}

std::unique_ptr<Graph> CopyWithout(const Graph& graph, const std::set<const Node*>& left_out) {
  auto result = std::make_unique<Graph>();
  std::unordered_map<const Node*, Node*> copies;
  for (const Node* node : TopologicalOrder(graph)) {
    if (left_out.count(node) > 0) continue;
    std::vector<Output> inputs;
    for (const Output& input : node->inputs()) inputs.push_back({copies.at(input.node), input.index});
    std::vector<Node*> controls;
    for (const Node* control : node->control_inputs()) controls.push_back(copies.at(control));
    copies[node] = CopyNode(*result, *node, inputs, controls);
  }
  TakeFunctions(graph, *result);
  return result;
}

}  // namespace cohort
