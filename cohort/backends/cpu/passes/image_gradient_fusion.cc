// FuseImageGradients. GradientFuser makes the three changes of the header one after another. Each of them adds new
// nodes and records which nodes they replace; at the end all readers are connected to the new nodes.
#include "cohort/backends/cpu/passes/image_gradient_fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/copy_node.h"

namespace cohort {
namespace {

constexpr const char* kFilterAndBias = "_FusedConv2DBackpropFilter";
constexpr const char* kPoolWithPlaces = "_MaxPoolWithPlaces";
constexpr const char* kGradAtPlaces = "_MaxPoolGradAtPlaces";

// Returns true if `wanted` is `node` or one of the nodes that it needs.
bool Needs(const Node* node, const Node* wanted) {
  std::vector<const Node*> stack = {node};
  std::set<const Node*> seen = {node};
  while (!stack.empty()) {
    const Node* at = stack.back();
    stack.pop_back();
    if (at == wanted) return true;
    const auto visit = [&](const Node* next) {
      if (seen.insert(next).second) stack.push_back(next);
    };
    for (const Output& input : at->inputs()) visit(input.node);
    for (const Node* control : at->control_inputs()) visit(control);
  }
  return false;
}

class GradientFuser {
 public:
  explicit GradientFuser(Graph& graph) : graph_(graph), nodes_(graph.nodes()) {}

  // Makes the changes. Returns the nodes that were replaced.
  std::set<const Node*> Run() {
    FuseBiasGradients();
    FusePools();
    if (!replaced_.empty()) Redirect();
    return replaced_;
  }

 private:
  void FuseBiasGradients() {
    std::map<ValueKey, Node*> filter_grads;  // by out_backprop
    for (Node* node : nodes_) {
      if (node->op_name() == "Conv2DBackpropFilter") filter_grads.emplace(KeyOf(node->input(2)), node);
    }
    for (Node* bias : nodes_) {
      if (bias->op_name() != "BiasAddGrad" || bias->attr<std::string>("data_format") != "NHWC") continue;
      const auto found = filter_grads.find(KeyOf(bias->input(0)));
      if (found == filter_grads.end() || !CanMerge(*found->second, *bias)) continue;
      Merge(found->second, bias);
      filter_grads.erase(found);  // of several only one
    }
  }

  // Returns true if neither node has to wait for the other.
  static bool CanMerge(const Node& filter, const Node& bias) {
    const auto needs_bias = [&](const Node* node) { return Needs(node, &bias); };
    const auto needs_filter = [&](const Node* node) { return Needs(node, &filter); };
    const auto& filter_waits = filter.control_inputs();
    const auto& bias_waits = bias.control_inputs();
    return !needs_bias(filter.input(0).node) && !needs_bias(filter.input(1).node) &&
           std::none_of(filter_waits.begin(), filter_waits.end(), needs_bias) &&
           std::none_of(bias_waits.begin(), bias_waits.end(), needs_filter);
  }

  void Merge(Node* filter, Node* bias) {
    NodeBuilder builder = graph_.Op(kFilterAndBias);
    builder.Name(StrCat(filter->name(), "/with_bias")).Attrs(filter->attrs()).Device(filter->device()).IgnoreScopes();
    for (const Output& input : filter->inputs()) builder.Input(input);
    for (const Node* part : {filter, bias}) {
      for (Node* control : part->control_inputs()) builder.Control(control);
    }
    Node* fused = builder.Finish();
    Replace(filter, 0, fused->output(0));
    Replace(bias, 0, fused->output(1));
  }

  void FusePools() {
    std::map<const Node*, std::vector<Node*>> readers;
    for (Node* node : nodes_) {
      for (const Output& input : node->inputs()) readers[input.node].push_back(node);
    }
    std::map<const Node*, Node*> with_places;  // by MaxPool
    for (Node* grad : nodes_) {
      if (grad->op_name() != "MaxPoolGrad") continue;
      Node* pool = grad->input(1).node;
      if (pool->op_name() != "MaxPool" || pool->input(0) != grad->input(0) || !SameWindows(*pool, *grad)) continue;
      Node*& keeper = with_places[pool];
      if (keeper == nullptr) {
        keeper = Substitute(pool, kPoolWithPlaces, pool->inputs());
        Replace(pool, 0, keeper->output(0));
      }
      const auto& read_by = readers[grad];
      Node* activation = read_by.size() == 1 && IsGradientAt(*read_by[0], *grad) ? read_by[0] : nullptr;
      Output arriving = grad->input(2);
      if (activation != nullptr) {
        std::vector<Output> inputs = activation->inputs();
        for (Output& input : inputs) input = input.node == grad ? arriving : keeper->output(0);
        arriving = Substitute(activation, activation->op_name(), inputs)->output(0);
      }
      Node* at_places = Substitute(grad, kGradAtPlaces, {keeper->output(2), keeper->output(1), arriving},
                                   {{"shape", grad->output_shape(0)}});
      Replace(grad, 0, at_places->output(0));
      if (activation != nullptr) Replace(activation, 0, at_places->output(0));
    }
  }

  // Returns true if `node` is the gradient of an activation whose result is the pool's input, if its gradient is the
  // result of `pool_grad`, and if it may run before `pool_grad`.
  static bool IsGradientAt(const Node& node, const Node& pool_grad) {
    const std::optional<int> gradient = node.op().activation_gradient();
    if (!gradient) return false;
    if (node.input(*gradient).node != &pool_grad || node.input(1 - *gradient) != pool_grad.input(0)) return false;
    const auto& waits = node.control_inputs();
    return std::none_of(waits.begin(), waits.end(), [&](const Node* before) { return Needs(before, &pool_grad); });
  }

  static bool SameWindows(const Node& a, const Node& b) {
    for (const char* attr : {"ksize", "strides"}) {
      if (a.attr<std::vector<int64_t>>(attr) != b.attr<std::vector<int64_t>>(attr)) return false;
    }
    return a.attr<std::string>("padding") == b.attr<std::string>("padding");
  }

  Node* Substitute(const Node* node, const std::string& op, const std::vector<Output>& inputs,
                   const AttrMap& more_attrs = {}) {
    NodeBuilder builder = graph_.Op(op);
    builder.Name(StrCat(node->name(), "/places")).Attrs(node->attrs()).Attrs(more_attrs);
    builder.Device(node->device()).IgnoreScopes();
    for (const Output& input : inputs) builder.Input(input);
    for (Node* control : node->control_inputs()) builder.Control(control);
    return builder.Finish();
  }

  void Replace(const Node* node, int output, Output by) {
    values_[{node, output}] = by;
    replaced_.insert(node);
  }

  // Connects all readers and control edges to the new nodes.
  void Redirect() {
    for (Node* node : graph_.nodes()) {
      if (replaced_.count(node) > 0) continue;
      for (int i = 0; i < node->num_inputs(); ++i) {
        const auto found = values_.find(KeyOf(node->input(i)));
        if (found != values_.end()) node->ReplaceInput(i, found->second);
      }
      std::vector<Node*> controls = node->control_inputs();
      for (Node*& control : controls) {
        const auto found = values_.find({control, 0});
        if (found != values_.end()) control = found->second.node;
      }
      node->ReplaceControlInputs(std::move(controls));
    }
  }

  Graph& graph_;
  const std::vector<Node*> nodes_;
  std::map<ValueKey, Output> values_;
  std::set<const Node*> replaced_;
};

}  // namespace

std::unique_ptr<Graph> FuseImageGradients(std::unique_ptr<Graph> graph, const std::string& device_type) {
  for (const char* op : {kFilterAndBias, kPoolWithPlaces, kGradAtPlaces}) {
    if (!KernelRegistry::Global().Has(op, device_type)) return graph;
  }
  const std::set<const Node*> replaced = GradientFuser(*graph).Run();
  return replaced.empty() ? std::move(graph) : CopyWithout(*graph, replaced);
}

}  // namespace cohort
