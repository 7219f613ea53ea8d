#include "cohort/runtime/placement/colocation.h"

#include <map>
#include <numeric>

#include "cohort/graph/device_name.h"

namespace cohort {
namespace {

class UnionFind {
 public:
  explicit UnionFind(size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }
  int Find(int item) {
    int& parent = parent_[static_cast<size_t>(item)];
    if (parent != item) parent = Find(parent);
    return parent;
  }
  // The lower number becomes the root.
  void Union(int a, int b) {
    const int root_a = Find(a);
    const int root_b = Find(b);
    parent_[static_cast<size_t>(std::max(root_a, root_b))] = std::min(root_a, root_b);
  }

 private:
  std::vector<int> parent_;
};

}  // namespace

ColocationGroups::ColocationGroups(const Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  UnionFind sets(nodes.size());
  std::map<std::string, int> absent;  // name that no node has -> the first node that names it
  for (const Node* node : nodes) {
    for (const std::string& name : node->colocate_with()) {
      const Node* other = graph.FindNode(name);
      sets.Union(node->id(), other != nullptr ? other->id() : absent.emplace(name, node->id()).first->second);
    }
    for (const Output& input : node->inputs()) {
      if (IsHandle(input.dtype())) sets.Union(node->id(), input.node->id());
    }
  }
  group_of_.resize(nodes.size(), -1);
  for (Node* node : nodes) {
    int& of_root = group_of_[static_cast<size_t>(sets.Find(node->id()))];
    if (of_root < 0) {
      of_root = static_cast<int>(groups_.size());
      groups_.emplace_back();
    }
    group_of_[static_cast<size_t>(node->id())] = of_root;
    groups_[static_cast<size_t>(of_root)].push_back(node);
  }
}

std::vector<std::string> ColocatedRequests(const Graph& graph) {
  const ColocationGroups colocation(graph);
  std::vector<std::string> requests(static_cast<size_t>(graph.num_nodes()));
  for (const std::vector<Node*>& group : colocation.groups()) {
    DeviceName merged;
    if (group.size() > 1) {
      for (const Node* node : group) merged = merged.CompletedFrom(DeviceName::Parse(node->device()));
    }
    for (const Node* node : group) {
      requests[static_cast<size_t>(node->id())] =
          group.size() > 1 ? DeviceName::Parse(node->device()).CompletedFrom(merged).ToString() : node->device();
    }
  }
  return requests;
}

}  // namespace cohort
