// Chooses the update sets and adds their barriers. The level of an update is the number of updates before it on its
// longest path. Updates of one device and one level are a set. If the barriers of all sets would close a cycle, the
// levels are counted over all devices instead.
#include "cohort/runtime/execution/update_barrier.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/topological_order.h"

namespace cohort {
namespace {

// The nodes that update variables in one set, and the nodes for which they wait.
struct UpdateNodes {
  std::string device;
  std::vector<Node*> updates;
  std::vector<Node*> inputs;
};

class Barriers {
 public:
  Barriers(const Graph& graph, const std::vector<std::string>& device_of_node)
      : order_(TopologicalOrder(graph)), device_of_node_(device_of_node) {
    for (const Node* node : order_) {
      if (node->op().updates_variable()) devices_.insert(DeviceOf(*node));
    }
  }

  std::vector<UpdateNodes> Choose() const {
    std::vector<UpdateNodes> sets;
    for (const std::string& device : devices_) {
      AppendSets(LevelsCounting([&](const Node& node) { return DeviceOf(node) == device; }), device, sets);
    }
    if (IsAcyclicWith(sets)) return sets;
    // Levels over all devices grow along every path that goes through an update. A cycle would have to lead from a
    // higher level to a lower one, so there is none.
    sets.clear();
    const std::vector<int> levels = LevelsCounting([](const Node&) { return true; });
    for (const std::string& device : devices_) AppendSets(levels, device, sets);
    return sets;
  }

 private:
  const std::string& DeviceOf(const Node& node) const { return device_of_node_[static_cast<size_t>(node.id())]; }

  template <typename Fn>
  static void ForEachInput(const Node& node, const Fn& fn) {
    for (const Output& input : node.inputs()) fn(input.node);
    for (Node* control : node.control_inputs()) fn(control);
  }

  // Returns for each node, by id, the largest number of updates that `counts` accepts on a path to the node, without
  // the node itself.
  template <typename Fn>
  std::vector<int> LevelsCounting(const Fn& counts) const {
    std::vector<int> levels(order_.size(), 0);
    for (const Node* node : order_) {
      int& level = levels[static_cast<size_t>(node->id())];
      ForEachInput(*node, [&](const Node* input) {
        const int counted = input->op().updates_variable() && counts(*input) ? 1 : 0;
        level = std::max(level, levels[static_cast<size_t>(input->id())] + counted);
      });
    }
    return levels;
  }

  // Returns whether the value of `node` exists on the device of `consumer` when the step starts.
  bool IsThereFromTheStart(const Node& node, const Node& consumer) const {
    if (node.num_inputs() > 0 || !node.control_inputs().empty()) return false;
    if (node.op_name() == "Const") return true;
    if (DeviceOf(node) != DeviceOf(consumer)) return false;
    return node.op_name() == "_Arg" || (node.num_outputs() > 0 && node.output_dtype(0) == DType::kResource);
  }

  void AppendSets(const std::vector<int>& levels, const std::string& device, std::vector<UpdateNodes>& sets) const {
    std::map<int, std::vector<Node*>> by_level;
    for (Node* node : order_) {
      if (node->op().updates_variable() && DeviceOf(*node) == device) {
        by_level[levels[static_cast<size_t>(node->id())]].push_back(node);
      }
    }
    for (auto& entry : by_level) {
      std::vector<Node*>& updates = entry.second;
      std::vector<std::set<int>> waits(updates.size());  // for each update: ids of the nodes for which it waits
      std::map<int, Node*> all;
      for (size_t i = 0; i < updates.size(); ++i) {
        ForEachInput(*updates[i], [&](Node* input) {
          if (IsThereFromTheStart(*input, *updates[i])) return;
          waits[i].insert(input->id());
          all.emplace(input->id(), input);
        });
      }
      const bool same = std::all_of(waits.begin(), waits.end(), [&](const auto& w) { return w.size() == all.size(); });
      if (same) continue;
      UpdateNodes set{device, std::move(updates), {}};
      for (const auto& [id, input] : all) set.inputs.push_back(input);
      sets.push_back(std::move(set));
    }
  }

  // Returns whether the graph has no cycle when all of `sets` get their barriers. Uses Kahn's algorithm; the barrier of
  // sets[i] is node order_.size() + i.
  bool IsAcyclicWith(const std::vector<UpdateNodes>& sets) const {
    const size_t size = order_.size() + sets.size();
    std::vector<std::vector<size_t>> consumers(size);
    std::vector<int> pending(size, 0);
    const auto add_edge = [&](size_t from, size_t to) {
      consumers[from].push_back(to);
      ++pending[to];
    };
    for (const Node* node : order_) {
      ForEachInput(*node, [&](const Node* input) {
        add_edge(static_cast<size_t>(input->id()), static_cast<size_t>(node->id()));
      });
    }
    for (size_t i = 0; i < sets.size(); ++i) {
      for (const Node* input : sets[i].inputs) add_edge(static_cast<size_t>(input->id()), order_.size() + i);
      for (const Node* update : sets[i].updates) add_edge(order_.size() + i, static_cast<size_t>(update->id()));
    }
    std::vector<size_t> ready;
    for (size_t i = 0; i < size; ++i) {
      if (pending[i] == 0) ready.push_back(i);
    }
    size_t done = 0;
    for (; !ready.empty(); ++done) {
      const size_t node = ready.back();
      ready.pop_back();
      for (const size_t consumer : consumers[node]) {
        if (--pending[consumer] == 0) ready.push_back(consumer);
      }
    }
    return done == size;
  }

  const std::vector<Node*> order_;
  const std::vector<std::string>& device_of_node_;
  std::set<std::string> devices_;  // the devices that have updates
};

}  // namespace

int AddUpdateBarriers(Graph& graph, std::vector<std::string>& device_of_node) {
  if (device_of_node.size() != static_cast<size_t>(graph.num_nodes())) {
    throw InternalError(
        StrCat("[update barrier] expected the devices of ", graph.num_nodes(), " nodes; got ", device_of_node.size()));
  }
  const std::vector<UpdateNodes> sets = Barriers(graph, device_of_node).Choose();
  for (const UpdateNodes& set : sets) {
    NodeBuilder builder = graph.Op("NoOp");
    builder.Name("_update_barrier").Device(set.device).IgnoreScopes();
    for (Node* input : set.inputs) builder.Control(input);
    Node* barrier = builder.Finish();
    device_of_node.push_back(set.device);
    for (Node* update : set.updates) update->AddControlInput(barrier);
  }
  return static_cast<int>(sets.size());
}

}  // namespace cohort
