// FuseBiases. BiasFuser first finds the patterns: a product, its bias, and possibly an activation, where each value in
// between has one reader. Then it copies the graph, and puts one fused node in the place of each pattern.
#include "cohort/backends/cpu/passes/bias_fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cohort/device/kernel.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/topological_order.h"

namespace cohort {
namespace {

// Returns the op that replaces a product with a bias. Returns null if `node` is not a product, or if the device has no
// kernel for it.
const char* FusedOp(const Node& node, const std::string& device_type) {
  static const std::map<std::string, const char*, std::less<>> ops = {
      {"MatMul", "_FusedMatMul"}, {"Conv2D", "_FusedConv2D"}, {"DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative"}};
  const auto found = ops.find(node.op_name());
  if (found == ops.end() || !KernelRegistry::Global().Has(found->second, device_type)) return nullptr;
  return found->second;
}

// A product, and the nodes that are fused into it.
struct Pattern {
  const char* fused = nullptr;
  const Node* product = nullptr;
  const Node* sum = nullptr;
  int bias = 1;  // which input of `sum`
  const Node* activation = nullptr;
  const Node* last() const { return activation != nullptr ? activation : sum; }
};

class BiasFuser {
 public:
  BiasFuser(const Graph& graph, const std::string& device_type)
      : device_type_(device_type), order_(TopologicalOrder(graph)) {
    for (const Node* node : order_) {
      for (const Output& input : node->inputs()) readers_[input.node].push_back(node);
      for (const Node* control : node->control_inputs()) readers_[control].push_back(node);
    }
    for (const Node* node : order_) {
      if (const auto found = Match(*node)) {
        patterns_[found->last()] = *found;
        inner_.insert(found->product);
        if (found->activation != nullptr) inner_.insert(found->sum);
      }
    }
  }

  bool found_any() const { return !patterns_.empty(); }

  std::unique_ptr<Graph> Rewrite() {
    auto result = std::make_unique<Graph>();
    for (const Node* node : order_) {
      if (inner_.count(node) > 0) continue;
      const auto pattern = patterns_.find(node);
      copies_[node] = pattern == patterns_.end() ? Copy(*result, *node) : AddFused(*result, pattern->second);
    }
    return result;
  }

 private:
  // Returns the only reader of the node's value. Returns null if there are several readers, or if the reader is a
  // control edge.
  const Node* OnlyReader(const Node& node) const {
    const auto found = readers_.find(&node);
    if (found == readers_.end() || found->second.size() != 1) return nullptr;
    const Node* reader = found->second.front();
    const auto reads = [&](const Output& input) { return input.node == &node; };
    return std::any_of(reader->inputs().begin(), reader->inputs().end(), reads) ? reader : nullptr;
  }

  // Returns which input of `sum` is a bias of the rows of `product`.
  static std::optional<int> BiasOf(const Node& sum, const Node& product) {
    if (sum.op_name() == "BiasAdd") {
      // For a matrix, both orders of dimensions are the same.
      const bool last = product.op_name() == "MatMul" || sum.attr<std::string>("data_format") == "NHWC";
      return last && sum.input(0).node == &product ? std::optional<int>(1) : std::nullopt;
    }
    if (sum.op_name() != "AddV2") return std::nullopt;
    const int bias = sum.input(0).node == &product ? 1 : 0;
    const Shape& vector = sum.input(bias).shape();
    const Shape& whole = product.output_shape(0);
    const bool fits = vector.has_rank() && vector.rank() == 1 && vector.dim(0) >= 0 && whole.has_rank() &&
                      whole.rank() >= 2 && whole.dim(whole.rank() - 1) == vector.dim(0);
    return fits ? std::optional<int>(bias) : std::nullopt;
  }

  std::optional<Pattern> Match(const Node& node) const {
    const char* fused = FusedOp(node, device_type_);
    if (fused == nullptr) return std::nullopt;
    const DType dtype = node.output_dtype(0);
    if (dtype != DType::kFloat32 && dtype != DType::kBfloat16 && dtype != DType::kFloat64) return std::nullopt;
    Pattern pattern;
    pattern.fused = fused;
    pattern.product = &node;
    pattern.sum = OnlyReader(node);
    if (pattern.sum == nullptr) return std::nullopt;
    const std::optional<int> bias = BiasOf(*pattern.sum, node);
    if (!bias) return std::nullopt;
    pattern.bias = *bias;
    const Node* next = OnlyReader(*pattern.sum);
    if (next != nullptr && next->op().is_activation()) pattern.activation = next;
    return pattern;
  }

  Output CopyOf(const Output& value) const { return {copies_.at(value.node), value.index}; }

  std::vector<Node*> CopiesOf(const std::vector<Node*>& nodes) const {
    std::vector<Node*> copies;
    for (const Node* node : nodes) copies.push_back(copies_.at(node));
    return copies;
  }

  Node* Copy(Graph& graph, const Node& node) const {
    std::vector<Output> inputs;
    for (const Output& input : node.inputs()) inputs.push_back(CopyOf(input));
    return CopyNode(graph, node, inputs, CopiesOf(node.control_inputs()));
  }

  Node* AddFused(Graph& graph, const Pattern& pattern) const {
    const Node& product = *pattern.product;
    NodeBuilder builder = graph.Op(pattern.fused);
    builder.ExactName(pattern.last()->name()).Device(product.device()).IgnoreScopes();
    builder.Input(CopyOf(product.input(0))).Input(CopyOf(product.input(1)));
    builder.Input(CopyOf(pattern.sum->input(pattern.bias)));
    builder.Attrs(product.attrs());
    builder.Attr("activation", pattern.activation != nullptr ? pattern.activation->op_name() : std::string());
    for (const Node* part : {pattern.product, pattern.sum, pattern.activation}) {
      if (part == nullptr) continue;
      for (Node* control : CopiesOf(part->control_inputs())) builder.Control(control);
    }
    return builder.Finish();
  }

  const std::string device_type_;
  const std::vector<Node*> order_;
  std::map<const Node*, std::vector<const Node*>> readers_;  // one entry an edge
  std::map<const Node*, Pattern> patterns_;                  // by last node
  std::set<const Node*> inner_;
  std::map<const Node*, Node*> copies_;
};

}  // namespace

std::unique_ptr<Graph> FuseBiases(std::unique_ptr<Graph> graph, const std::string& device_type) {
  BiasFuser fuser(*graph, device_type);
  if (!fuser.found_any()) return graph;
  std::unique_ptr<Graph> fused = fuser.Rewrite();
  TakeFunctions(*graph, *fused);
  return fused;
}

}  // namespace cohort
