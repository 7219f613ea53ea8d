#include "cohort/graph/topological_order.h"

#include <queue>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// Follows inputs that are not done, beginning at a node that is not done, until a node occurs a second time.
std::string DescribeCycle(Node* start, const std::vector<int>& pending) {
  std::vector<Node*> path;
  std::vector<bool> seen(pending.size(), false);
  Node* node = start;
  while (!seen[static_cast<size_t>(node->id())]) {
    seen[static_cast<size_t>(node->id())] = true;
    path.push_back(node);
    Node* next = nullptr;
    for (const Output& input : node->inputs()) {
      if (pending[static_cast<size_t>(input.node->id())] > 0) next = input.node;
    }
    for (Node* control : node->control_inputs()) {
      if (next == nullptr && pending[static_cast<size_t>(control->id())] > 0) next = control;
    }
    node = next;
  }
  std::string text = node->name();
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    text += " -> " + (*it)->name();
    if (*it == node) break;
  }
  return text;
}

}  // namespace

std::vector<Node*> TopologicalOrder(const Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  std::vector<int> pending(nodes.size(), 0);
  std::vector<std::vector<Node*>> consumers(nodes.size());
  for (Node* node : nodes) {
    for (const Output& input : node->inputs()) consumers[static_cast<size_t>(input.node->id())].push_back(node);
    for (const Node* control : node->control_inputs()) consumers[static_cast<size_t>(control->id())].push_back(node);
    pending[static_cast<size_t>(node->id())] = node->num_inputs() + static_cast<int>(node->control_inputs().size());
  }
  const auto later = [](const Node* a, const Node* b) { return a->id() > b->id(); };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  for (Node* node : nodes) {
    if (pending[static_cast<size_t>(node->id())] == 0) ready.push(node);
  }
  std::vector<Node*> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    order.push_back(node);
    for (Node* consumer : consumers[static_cast<size_t>(node->id())]) {
      if (--pending[static_cast<size_t>(consumer->id())] == 0) ready.push(consumer);
    }
  }
  if (order.size() < nodes.size()) {
    for (Node* node : nodes) {
      if (pending[static_cast<size_t>(node->id())] > 0) {
        throw InvalidArgumentError(StrCat("[graph] the graph has a cycle: ", DescribeCycle(node, pending)));
      }
    }
  }
  return order;
}

}  // namespace cohort
