// MoveActivations. FuseGradients puts one new node in the place of each gradient of an activation and the node that
// writes its operand or reads its result. DeferActivations then finds the activations whose readers can apply them
// (Find), tells the readers, and connects them to the operand. Gradients come first, because the new nodes are readers
// that can.
#include "cohort/backends/cuda/passes/move_activations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/kernels/activation.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/copy_node.h"

namespace cohort::cuda {
namespace {

// An edge: input `input` of `node`, or a control edge if it is -1.
struct Reader {
  Node* node;
  int input;
};
constexpr int kControl = -1;
using Readers = std::map<const Node*, std::vector<Reader>>;

Readers ReadersOf(const Graph& graph) {
  Readers readers;
  for (Node* node : graph.nodes()) {
    for (int i = 0; i < node->num_inputs(); ++i) readers[node->input(i).node].push_back({node, i});
    for (const Node* control : node->control_inputs()) readers[control].push_back({node, kControl});
  }
  return readers;
}

// Returns whether `wanted` is `node` or one of the nodes that it needs.
bool Needs(const Node* node, const Node* wanted) {
  std::vector<const Node*> stack = {node};
  std::set<const Node*> seen = {node};
  while (!stack.empty()) {
    const Node* const at = stack.back();
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

// Makes all control edges from old nodes edges from the nodes that replace them.
void MoveControls(const Graph& graph, const std::map<const Node*, Node*>& by) {
  for (Node* node : graph.nodes()) {
    std::vector<Node*> controls;
    for (Node* control : node->control_inputs()) {
      const auto found = by.find(control);
      Node* const next = found == by.end() ? control : found->second;
      if (next != node && std::find(controls.begin(), controls.end(), next) == controls.end()) controls.push_back(next);
    }
    if (controls != node->control_inputs()) node->ReplaceControlInputs(std::move(controls));
  }
}

// Returns the op that is `op` and, behind it, the gradient of an activation in one, or null.
const char* WithGradientOfResult(const std::string& op) {
  if (op == "DepthwiseConv2dNativeBackpropInput") return "_FusedDepthwiseConv2dNativeBackpropInput";
  if (op == "AvgPoolGrad") return "_FusedAvgPoolGrad";
  return nullptr;
}

// Returns the op that is the gradient of an activation and, behind it, `op` in one, or null. `input` is the input of
// `op` that is the gradient.
const char* WithGradientOfInput(const std::string& op, int input) {
  return op == "_MaxPoolGradAtPlaces" && input == 2 ? "_FusedMaxPoolGradAtPlaces" : nullptr;
}

// Returns whether the node is one kernel with elementwise nodes that read its result.
bool BeginsChain(const Node& node) { return node.op().is_elementwise() || node.op().is_broadcasting(); }

// Returns the node that writes the operand of `gradient`, if they can become one.
Node* WriterFor(const Node& gradient, const Readers& readers) {
  const std::optional<int> operand = gradient.op().activation_gradient();
  if (!operand || !FindActivationGradient(gradient.op_name())) return nullptr;
  Node* const writer = gradient.input(*operand).node;
  if (WithGradientOfResult(writer->op_name()) == nullptr || readers.at(writer).size() != 1) return nullptr;
  const Node* const activated = gradient.input(1 - *operand).node;
  const auto& waits = gradient.control_inputs();
  const auto needs_writer = [&](const Node* node) { return Needs(node, writer); };
  return needs_writer(activated) || std::any_of(waits.begin(), waits.end(), needs_writer) ? nullptr : writer;
}

// Returns the only reader of the result of `gradient`, if they can become one.
Node* ReaderFor(const Node& gradient, const Readers& readers) {
  const std::optional<int> operand = gradient.op().activation_gradient();
  if (!operand || !FindActivationGradient(gradient.op_name()) || BeginsChain(*gradient.input(*operand).node)) {
    return nullptr;
  }
  const auto found = readers.find(&gradient);
  if (found == readers.end() || found->second.size() != 1) return nullptr;
  const Reader& reader = found->second.front();
  return WithGradientOfInput(reader.node->op_name(), reader.input) == nullptr ? nullptr : reader.node;
}

// Adds the node that is `op` and does the work of both `neighbour` and the gradient of an activation. It has the inputs
// of the neighbour, but reads the operand of the gradient in place of its result, and then what was activated.
Node* AddFused(Graph& graph, const char* op, const Node& neighbour, const Node& gradient) {
  const int operand = *gradient.op().activation_gradient();
  NodeBuilder builder = graph.Op(op);
  builder.Name(StrCat(gradient.name(), "/fused")).Attrs(neighbour.attrs()).Attr("gradient", gradient.op_name());
  builder.Device(gradient.device()).IgnoreScopes().At(gradient.site());
  for (const Output& input : neighbour.inputs()) {
    builder.Input(input.node == &gradient ? gradient.input(operand) : input);
  }
  builder.Input(gradient.input(1 - operand));
  for (const Node* part : {&neighbour, &gradient}) {
    for (Node* control : part->control_inputs()) builder.Control(control);
  }
  return builder.Finish();
}

std::unique_ptr<Graph> FuseGradients(std::unique_ptr<Graph> graph) {
  const Readers readers = ReadersOf(*graph);
  std::map<const Node*, Node*> fused;  // by the last of the nodes in whose place it is
  std::set<const Node*> replaced;
  for (Node* gradient : std::vector<Node*>(graph->nodes())) {
    if (const Node* const writer = WriterFor(*gradient, readers)) {
      fused[gradient] = AddFused(*graph, WithGradientOfResult(writer->op_name()), *writer, *gradient);
      replaced.insert({gradient, writer});
    } else if (const Node* const reader = ReaderFor(*gradient, readers)) {
      const char* const op = WithGradientOfInput(reader->op_name(), readers.at(gradient).front().input);
      fused[reader] = AddFused(*graph, op, *reader, *gradient);
      replaced.insert({gradient, reader});
    }
  }
  if (replaced.empty()) return graph;
  for (Node* node : graph->nodes()) {
    for (int i = 0; i < node->num_inputs() && replaced.count(node) == 0; ++i) {
      const auto found = fused.find(node->input(i).node);
      if (found != fused.end()) node->ReplaceInput(i, found->second->output(0));
    }
  }
  MoveControls(*graph, fused);
  return CopyWithout(*graph, replaced);
}

// Returns the attribute in which the reader takes the activation of this input, or null if it does not apply any.
const char* AttributeFor(const Reader& reader) {
  static const std::set<std::string, std::less<>> first = {"DepthwiseConv2dNative",
                                                           "_FusedDepthwiseConv2dNative",
                                                           "DepthwiseConv2dNativeBackpropFilter",
                                                           "MaxPool",
                                                           "_MaxPoolWithPlaces",
                                                           "AvgPool"};
  static const std::map<std::string, int, std::less<>> activated = {
      {"_FusedDepthwiseConv2dNativeBackpropInput", 3}, {"_FusedAvgPoolGrad", 2}, {"_FusedMaxPoolGradAtPlaces", 3}};
  const std::string& op = reader.node->op_name();
  if (reader.input == 0 && first.count(op) > 0) return kInputActivation;
  const auto found = activated.find(op);
  return found != activated.end() && found->second == reader.input ? "activation" : nullptr;
}

// Returns whether the convolution is a product of matrices, whatever the shape of its images.
bool IsProduct(const Node& convolution) {
  const Shape& input = convolution.input(0).shape();
  const Shape& filter = convolution.input(1).shape();
  if (!input.has_rank() || input.rank() != 4 || !filter.IsFullyDefined()) return false;
  const auto& strides = convolution.attr<std::vector<int64_t>>("strides");
  return filter.dim(0) == 1 && filter.dim(1) == 1 && filter.dim(2) > 1 && filter.dim(2) == input.dim(3) &&
         convolution.attr<std::string>("padding") != "EXPLICIT" &&
         std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
}

// Returns the op of an activation that would cost a pass over the node's result, or "".
std::string CostlyActivation(const Node& node) {
  if (node.op_name() == "_FusedConv2D" && IsProduct(node)) {
    const auto& activation = node.attr<std::string>("activation");
    return FindActivation(activation) == Activation::kRelu ? std::string() : activation;
  }
  if (!node.op().is_activation()) return "";
  return BeginsChain(*node.input(0).node) ? std::string() : node.op_name();
}

std::unique_ptr<Graph> DeferActivations(std::unique_ptr<Graph> graph) {
  const Readers readers = ReadersOf(*graph);
  std::map<const Node*, Node*> left_out;  // with the nodes in their places
  for (Node* node : graph->nodes()) {
    const std::string activation = CostlyActivation(*node);
    const auto found = readers.find(node);
    if (activation.empty() || found == readers.end()) continue;
    bool has_values = false;
    const bool all_can = std::all_of(found->second.begin(), found->second.end(), [&](const Reader& reader) {
      const bool reads_elements = reader.input != kControl && !reader.node->op().reads_shape_only();
      has_values = has_values || reads_elements;
      return !reads_elements || AttributeFor(reader) != nullptr;
    });
    if (!all_can || !has_values) continue;
    const bool is_single = node->op().is_activation();
    for (const Reader& reader : found->second) {
      if (reader.input == kControl) continue;
      if (const char* attribute = AttributeFor(reader)) reader.node->SetAttr(attribute, activation);
      if (is_single) reader.node->ReplaceInput(reader.input, node->input(0));
      for (Node* control : node->control_inputs()) {
        if (is_single) reader.node->AddControlInput(control);
      }
    }
    if (is_single) {
      left_out[node] = node->input(0).node;
    } else {
      node->SetAttr("activation", std::string());
    }
  }
  if (left_out.empty()) return graph;
  MoveControls(*graph, left_out);
  std::set<const Node*> nodes;
  for (const auto& [node, by] : left_out) nodes.insert(node);
  return CopyWithout(*graph, nodes);
}

}  // namespace

std::unique_ptr<Graph> MoveActivations(std::unique_ptr<Graph> graph, const std::string& device_type) {
  for (const char* op :
       {"_FusedDepthwiseConv2dNativeBackpropInput", "_FusedAvgPoolGrad", "_FusedMaxPoolGradAtPlaces"}) {
    if (!KernelRegistry::Global().Has(op, device_type)) return graph;
  }
  return DeferActivations(FuseGradients(std::move(graph)));
}

}  // namespace cohort::cuda
