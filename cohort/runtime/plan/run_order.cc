#include "cohort/runtime/plan/run_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cohort/graph/copy_node.h"
#include "cohort/graph/topological_order.h"

namespace cohort {
namespace {

// The assumed size of a dimension that is not known before the step, most often the batch.
constexpr int64_t kUnknownDim = 64;

// Returns an estimate of the bytes of a value, or nullopt if its rank is not known.
std::optional<int64_t> GuessBytes(const Output& value) {
  if (value.dtype() == DType::kResource) return 0;
  if (!value.shape().has_rank()) return std::nullopt;
  int64_t bytes = static_cast<int64_t>(DTypeSize(value.dtype()));
  for (int i = 0; i < value.shape().rank(); ++i) {
    const int64_t dim = value.shape().dim(i);
    bytes *= dim < 0 ? kUnknownDim : dim;
  }
  return bytes;
}

class Hoister {
 public:
  explicit Hoister(const Graph& graph) : order_(TopologicalOrder(graph)) {
    for (const Node* node : order_) {
      for (const Output& input : node->inputs()) last_reader_[KeyOf(input)] = node;
    }
  }

  std::vector<Node*> Run() {
    // The key of a node is {place, rank}: `place` is a position in the given order. The node of that position has rank
    // -1. Nodes that have moved there follow it, by their own positions.
    std::vector<std::pair<std::pair<int, int>, Node*>> places;
    std::map<const Node*, std::pair<int, int>> place_of;
    for (size_t i = 0; i < order_.size(); ++i) {
      Node* node = order_[i];
      const int at = static_cast<int>(i);
      std::pair<int, int> place{at, -1};
      if (FreesMemory(*node)) {
        int behind = 0;
        for (const Output& input : node->inputs()) behind = std::max(behind, place_of.at(input.node).first);
        for (const Node* control : node->control_inputs()) behind = std::max(behind, place_of.at(control).first);
        place = {behind, at};
      }
      place_of[node] = place;
      places.emplace_back(place, node);
    }
    std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Node*> order;
    order.reserve(places.size());
    for (const auto& [place, node] : places) order.push_back(node);
    return order;
  }

 private:
  bool FreesMemory(const Node& node) const {
    if (node.op().is_stateful() || node.num_outputs() == 0 || node.num_inputs() == 0) return false;
    int64_t freed = 0;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output& input = node.input(i);
      const auto same = [&](const Output& other) { return KeyOf(other) == KeyOf(input); };
      const bool is_first = std::find_if(node.inputs().begin(), node.inputs().end(), same) == node.inputs().begin() + i;
      if (is_first && last_reader_.at(KeyOf(input)) == &node && !input.node->op().returns_kept_value())
        freed += GuessBytes(input).value_or(0);
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      const std::optional<int64_t> made = GuessBytes(node.output(i));
      if (!made) return false;
      freed -= *made;
    }
    return freed > 0;
  }

  const std::vector<Node*> order_;
  std::map<ValueKey, const Node*> last_reader_;
};

}  // namespace

std::vector<Node*> RunOrder(const Graph& graph) { return Hoister(graph).Run(); }

}  // namespace cohort
