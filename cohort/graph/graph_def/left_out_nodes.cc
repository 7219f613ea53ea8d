#include <algorithm>
#include <set>
#include <string>

#include "cohort/graph/graph_def/left_out_nodes_internal.h"

namespace cohort {
namespace {

using Names = std::set<std::string, std::less<>>;

// Returns whether an attribute of the node names one of the functions.
bool NamesOneOf(const Names& functions, const proto::NodeDef& node) {
  return std::any_of(node.attr().begin(), node.attr().end(), [&](const auto& attr) {
    const auto& list = attr.second.list().func();
    return functions.contains(attr.second.func().name()) ||
           std::any_of(list.begin(), list.end(), [&](const auto& func) { return functions.contains(func.name()); });
  });
}

// Removes the functions with a refused op, and those that name a removed one.
Names RemoveFunctions(const std::function<bool(std::string_view op)>& has_op, proto::GraphDef* def) {
  Names removed;
  auto& functions = *def->mutable_library()->mutable_function();
  for (int left = functions.size() + 1; left != functions.size();) {
    left = functions.size();
    functions.erase(std::remove_if(functions.begin(), functions.end(),
                                   [&](const proto::FunctionDef& function) {
                                     const auto& nodes = function.node_def();
                                     const bool refused =
                                         std::any_of(nodes.begin(), nodes.end(), [&](const proto::NodeDef& node) {
                                           return !has_op(node.op()) || NamesOneOf(removed, node);
                                         });
                                     if (refused) removed.insert(function.signature().name());
                                     return refused;
                                   }),
                    functions.end());
  }
  return removed;
}

bool Needs(const proto::NodeDef& node, const Names& nodes, const Names& functions) {
  if (NamesOneOf(functions, node)) return true;
  return std::any_of(node.input().begin(), node.input().end(),
                     [&](const std::string& input) { return nodes.contains(input.substr(0, input.find(':'))); });
}

// Removes control inputs from removed nodes, and colocation with them.
void Forget(const Names& removed, proto::NodeDef* node) {
  auto& inputs = *node->mutable_input();
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                              [&](const std::string& input) {
                                return input.starts_with('^') && removed.contains(std::string_view(input).substr(1));
                              }),
               inputs.end());
  const auto it = node->mutable_attr()->find("_class");
  if (it == node->mutable_attr()->end()) return;
  auto& classes = *it->second.mutable_list()->mutable_s();
  classes.erase(std::remove_if(classes.begin(), classes.end(),
                               [&](const std::string& name) {
                                 return name.starts_with("loc:@") && removed.contains(std::string_view(name).substr(5));
                               }),
                classes.end());
  if (classes.empty()) node->mutable_attr()->erase(it);
}

}  // namespace

void LeaveOutNodes(const std::function<bool(std::string_view op)>& has_op, proto::GraphDef* def) {
  const Names functions = RemoveFunctions(has_op, def);
  Names removed;
  auto& nodes = *def->mutable_node();
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](const proto::NodeDef& node) {
                               const bool refused = !has_op(node.op()) || Needs(node, removed, functions);
                               if (refused) removed.insert(node.name());
                               return refused;
                             }),
              nodes.end());
  for (proto::NodeDef& node : nodes) Forget(removed, &node);
}

}  // namespace cohort
