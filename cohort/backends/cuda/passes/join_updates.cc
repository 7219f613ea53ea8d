// JoinUpdatesOfOptimizers. Each update that the kernel can join is put into a group of updates that agree with it. Then
// a new node takes the place of each group of two or more.
#include "cohort/backends/cuda/passes/join_updates.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/kernels/training.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/joined_updates.h"

namespace cohort::cuda {
namespace {

bool IsConstant(const Node& node) { return node.op_name() == "Const" && node.control_inputs().empty(); }

// Returns whether the value of the node is there when the step begins.
bool IsThereFromTheStart(const Node& node) {
  if (node.num_inputs() > 0 || !node.control_inputs().empty()) return false;
  const std::string& op = node.op_name();
  return op == "Const" || op == "_Arg" || op == "VarHandleOp";
}

using Nodes = std::set<const Node*>;

// Returns the nodes for which the update waits: a single one if that is a barrier behind all others.
Nodes NodesBefore(const Node& update) {
  Nodes waits;
  for (const Output& input : update.inputs()) {
    if (!IsThereFromTheStart(*input.node)) waits.insert(input.node);
  }
  const auto& controls = update.control_inputs();
  waits.insert(controls.begin(), controls.end());
  for (const Node* barrier : controls) {
    if (barrier->op_name() != "NoOp") continue;
    const Nodes before(barrier->control_inputs().begin(), barrier->control_inputs().end());
    const auto is_before = [&](const Node* node) { return node == barrier || before.count(node) > 0; };
    if (std::all_of(waits.begin(), waits.end(), is_before)) return {barrier};
  }
  return waits;
}

// Returns whether both are the same value: of one node, or of equal constants.
bool AreSame(const Output& a, const Output& b) {
  return a == b || (IsConstant(*a.node) && IsConstant(*b.node) && a.node->attrs() == b.node->attrs());
}

// Returns whether an input differs between the updates of an optimizer: a variable, the gradient, or its indices.
bool BelongsToOneUpdate(const ArgDef& arg) {
  return arg.dtype == DType::kResource || arg.name == "grad" || arg.name == "delta" || arg.name == "indices" ||
         arg.name == "updates";
}

// Returns whether the graph says which variables the update changes: they are no arguments of a function.
bool NamesItsVariables(const Node& update) {
  const auto& inputs = update.inputs();
  return std::all_of(inputs.begin(), inputs.end(), [](const Output& input) {
    return input.dtype() != DType::kResource || input.node->op_name() == "VarHandleOp";
  });
}

// Returns the names of the variables. Two handles of one variable have the same name.
std::vector<std::string> VariablesOf(const Node& update) {
  std::vector<std::string> names;
  for (const Output& input : update.inputs()) {
    if (input.dtype() != DType::kResource) continue;
    const auto& shared = input.node->attr<std::string>("shared_name");
    names.push_back(
        StrCat(input.node->attr<std::string>("container"), "/", shared.empty() ? input.node->name() : shared));
  }
  return names;
}

// Updates that become one node, the nodes for which all of them wait, and their variables, which are all different.
struct Group {
  std::vector<Node*> updates;
  Nodes waits;
  std::set<std::string> variables;

  bool Takes(const Node& update, const Nodes& its_waits) const {
    const Node& first = *updates.front();
    if (first.op_name() != update.op_name() || first.attrs() != update.attrs() || waits != its_waits) return false;
    for (int i = 0; i < update.num_inputs(); ++i) {
      if (!BelongsToOneUpdate(update.input_arg(i)) && !AreSame(first.input(i), update.input(i))) return false;
    }
    const std::vector<std::string> its_variables = VariablesOf(update);
    return std::none_of(its_variables.begin(), its_variables.end(),
                        [&](const std::string& name) { return variables.count(name) > 0; });
  }
  void Add(Node* update) {
    updates.push_back(update);
    for (std::string& name : VariablesOf(*update)) variables.insert(std::move(name));
  }
};

std::vector<Group> FindGroups(const Graph& graph) {
  std::vector<Group> groups;
  for (Node* node : graph.nodes()) {
    if (!CanJoinUpdates(node->op_name()) || !NamesItsVariables(*node)) continue;
    Nodes waits = NodesBefore(*node);
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.Takes(*node, waits); });
    if (found == groups.end()) found = groups.insert(groups.end(), Group{{}, std::move(waits), {}});
    found->Add(node);
  }
  std::erase_if(groups, [](const Group& group) { return group.updates.size() < 2; });
  return groups;
}

}  // namespace

std::unique_ptr<Graph> JoinUpdatesOfOptimizers(std::unique_ptr<Graph> graph) {
  std::map<const Node*, Node*> joined;
  Nodes replaced;
  for (const Group& group : FindGroups(*graph)) {
    Node* const node = JoinUpdates(*graph, group.updates);
    for (const Node* update : group.updates) {
      joined[update] = node;
      replaced.insert(update);
    }
  }
  if (replaced.empty()) return graph;
  for (Node* node : graph->nodes()) {
    if (replaced.count(node) > 0) continue;
    std::vector<Node*> controls;
    for (Node* control : node->control_inputs()) {
      const auto found = joined.find(control);
      Node* const by = found == joined.end() ? control : found->second;
      if (std::find(controls.begin(), controls.end(), by) == controls.end()) controls.push_back(by);
    }
    node->ReplaceControlInputs(std::move(controls));
  }
  return CopyWithout(*graph, replaced);
}

}  // namespace cohort::cuda
