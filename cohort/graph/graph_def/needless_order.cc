#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def/input_name_internal.h"
#include "cohort/graph/graph_def/needless_order_internal.h"

namespace cohort {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<proto::NodeDef>;

// The nodes by number, and who reads whom.
class Edges {
 public:
  explicit Edges(const Nodes& nodes) : inputs_(static_cast<size_t>(nodes.size())), readers_(inputs_.size()) {
    std::unordered_map<std::string, int> numbers;
    for (int i = 0; i < nodes.size(); ++i) numbers.emplace(nodes.Get(i).name(), i);
    for (int i = 0; i < nodes.size(); ++i) {
      for (const std::string& input : nodes.Get(i).input()) {
        const auto found = numbers.find(NodeOf(input));
        const int from = found == numbers.end() ? -1 : found->second;  // -1: an argument, or nothing
        inputs_[static_cast<size_t>(i)].push_back(from);
        if (from >= 0) readers_[static_cast<size_t>(from)].push_back(i);
      }
    }
  }
  // Of node i, in the order of its inputs. -1 stands for what is no node.
  const std::vector<int>& inputs(int i) const { return inputs_[static_cast<size_t>(i)]; }

  // Returns for each node whether it is one of `from`, or comes after one (`forward`), or before one.
  std::vector<bool> Reach(const std::vector<int>& from, bool forward) const {
    std::vector<bool> reached(inputs_.size(), false);
    std::vector<int> open = from;
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      if (node < 0 || reached[static_cast<size_t>(node)]) continue;
      reached[static_cast<size_t>(node)] = true;
      const std::vector<int>& next = (forward ? readers_ : inputs_)[static_cast<size_t>(node)];
      open.insert(open.end(), next.begin(), next.end());
    }
    return reached;
  }

 private:
  std::vector<std::vector<int>> inputs_, readers_;
};

void DropControls(const std::function<bool(const proto::NodeDef&)>& has_effect, Nodes& nodes) {
  const Edges edges(nodes);
  std::vector<int> effects;
  for (int i = 0; i < nodes.size(); ++i) {
    if (has_effect(nodes.Get(i))) effects.push_back(i);
  }
  const std::vector<bool> after = edges.Reach(effects, true), before = edges.Reach(effects, false);
  for (int i = 0; i < nodes.size(); ++i) {
    if (before[static_cast<size_t>(i)]) continue;
    const std::vector<std::string> old(nodes.Get(i).input().begin(), nodes.Get(i).input().end());
    proto::NodeDef& node = *nodes.Mutable(i);
    node.clear_input();
    for (size_t k = 0; k < old.size(); ++k) {
      const int from = edges.inputs(i)[k];
      if (!IsControl(old[k]) || from < 0 || after[static_cast<size_t>(from)]) node.add_input(old[k]);
    }
  }
}

// Follows `next` from `value` to the end, or once around a circle. Shortens the way for later calls.
std::string Last(const std::string& value, std::unordered_map<std::string, std::string>& next) {
  std::vector<std::string*> seen;
  const std::string* last = &value;
  for (auto it = next.find(value); it != next.end() && it->second != *last && seen.size() < next.size();
       it = next.find(*last)) {
    seen.push_back(&it->second);
    last = &it->second;
  }
  const std::string found = *last;
  for (std::string* passed : seen) *passed = found;
  return found;
}

void DropIdentities(const std::unordered_set<std::string>& ends, bool in_graph, Nodes& nodes) {
  std::unordered_map<std::string, std::string> inputs;  // by the value of the Identity
  std::unordered_set<std::string> ordered;              // nodes that are control inputs
  for (const proto::NodeDef& node : nodes) {
    for (const std::string& input : node.input()) {
      if (IsControl(input)) ordered.insert(NodeOf(input));
    }
  }
  for (const proto::NodeDef& node : nodes) {
    if (node.op() != "Identity" || node.input_size() != 1 || IsControl(node.input(0))) continue;
    if (ends.count(node.name()) > 0 || ordered.count(node.name()) > 0) continue;
    inputs[StrCat(node.name(), in_graph ? ":0" : ":output:0")] = node.input(0);
    if (in_graph) inputs[node.name()] = node.input(0);
  }
  for (proto::NodeDef& node : nodes) {
    for (std::string& input : *node.mutable_input()) input = Last(input, inputs);
  }
}

}  // namespace

void DropNeedlessOrder(const std::vector<std::string>& ends, bool in_graph,
                       const std::function<bool(const proto::NodeDef&)>& has_effect, Nodes& nodes) {
  DropControls(has_effect, nodes);
  std::unordered_set<std::string> kept;
  for (const std::string& end : ends) kept.insert(NodeOf(end));
  DropIdentities(kept, in_graph, nodes);
}

}  // namespace cohort
