// ChooseOrders. Tables say which operands of an op are images (ConvolutionOp, FollowerOp). OrderChooser decides in the
// graph's order which values are in blocks: convolutions begin, and later nodes follow if their images are in blocks.
// Then the nodes get their attributes, and changes of order are added.
#include "cohort/backends/cpu/passes/layout.h"

#include <algorithm>
#include <map>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/topological_order.h"

namespace cohort {
namespace {

constexpr int64_t kBlock = 16;

// The positions of the convolution's input, output and filter at an op of the family of convolutions. A position is the
// number of an input, or kResult for output 0.
constexpr int kResult = 100;
struct ConvolutionOp {
  int input;
  int output;
  int filter;
  bool depthwise;
};

const ConvolutionOp* FindConvolution(const Node& node) {
  static const std::map<std::string, ConvolutionOp, std::less<>> ops = {
      {"Conv2D", {0, kResult, 1, false}},
      {"_FusedConv2D", {0, kResult, 1, false}},
      {"Conv2DBackpropInput", {kResult, 2, 1, false}},
      {"Conv2DBackpropFilter", {0, 2, kResult, false}},
      {"_FusedConv2DBackpropFilter", {0, 2, kResult, false}},
      {"DepthwiseConv2dNative", {0, kResult, 1, true}},
      {"_FusedDepthwiseConv2dNative", {0, kResult, 1, true}},
      {"DepthwiseConv2dNativeBackpropInput", {kResult, 2, 1, true}},
      {"DepthwiseConv2dNativeBackpropFilter", {0, 2, kResult, true}}};
  const auto found = ops.find(node.op_name());
  return found == ops.end() ? nullptr : &found->second;
}

// Ops that work in the order of one of their images, the leader. All inputs in `images` have the same order.
struct FollowerOp {
  int leader;
  std::vector<int> images;
};

const FollowerOp* FindFollower(const Node& node) {
  static const std::map<std::string, FollowerOp, std::less<>> ops = {{"MaxPool", {0, {0}}},
                                                                     {"MaxPoolGrad", {0, {0, 1, 2}}},
                                                                     {"_MaxPoolWithPlaces", {0, {0}}},
                                                                     {"_MaxPoolGradAtPlaces", {1, {1, 2}}},
                                                                     {"AvgPool", {0, {0}}},
                                                                     {"AvgPoolGrad", {1, {1}}},
                                                                     {"FusedBatchNormV3", {0, {0}}},
                                                                     {"FusedBatchNormGradV3", {1, {0, 1}}}};
  const auto found = ops.find(node.op_name());
  return found == ops.end() ? nullptr : &found->second;
}

bool IsBlockable(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kBfloat16; }

// Returns true if each element of the result depends on one element of each operand, and the operands can be in blocks.
// Operands of other dtypes, such as bool, are never in blocks.
bool IsElementwise(const Node& node) {
  const OpDef& op = node.op();
  if (!op.is_elementwise() && !op.is_broadcasting()) return false;
  const auto is_blockable = [](const Output& input) { return IsBlockable(input.dtype()); };
  return IsBlockable(node.output_dtype(0)) && std::all_of(node.inputs().begin(), node.inputs().end(), is_blockable);
}

// Returns -1 if it is not known.
int64_t Dim(const Shape& shape, int i) { return shape.has_rank() && shape.rank() == 4 ? shape.dim(i) : -1; }
bool FillsBlocks(int64_t channels) { return channels > 0 && channels % kBlock == 0; }

const Shape& ShapeAt(const Node& node, int place) {
  return place == kResult ? node.output_shape(0) : node.input(place).shape();
}

// The orders in which a node reads and writes images.
struct Choice {
  bool blocked_input = false;   // of a convolution's input; of the images of others
  bool blocked_output = false;  // of a convolution's output
};

Choice ChooseForConvolution(const Node& node, const ConvolutionOp& op) {
  const int64_t in = Dim(ShapeAt(node, op.input), 3), out = Dim(ShapeAt(node, op.output), 3);
  const Shape& filter = ShapeAt(node, op.filter);
  if (!IsBlockable(node.output_dtype(0)) || !FillsBlocks(out) || in < 0) return {};
  if (op.depthwise) {
    // Larger and dilated convolutions have no fast gradients in blocks.
    const auto& dilations = node.attr<std::vector<int64_t>>("dilations");
    const bool near = std::all_of(dilations.begin(), dilations.end(), [](int64_t d) { return d == 1; });
    const bool small = Dim(filter, 0) >= 0 && Dim(filter, 0) <= 3 && Dim(filter, 1) >= 0 && Dim(filter, 1) <= 3;
    return near && small && in == out ? Choice{true, true} : Choice{};
  }
  if (Dim(filter, 2) != in) return {};  // groups
  if (FillsBlocks(in)) return {true, true};
  return {false, in < kBlock};  // few channels, as pixels have
}

class OrderChooser {
 public:
  explicit OrderChooser(const Graph& graph) : order_(TopologicalOrder(graph)) {
    for (Node* node : order_) {
      const Choice choice = Choose(*node);
      choices_[node] = choice;
      const ConvolutionOp* convolution = FindConvolution(*node);
      const bool makes_output = convolution != nullptr && convolution->output == kResult;
      const bool makes_input = convolution != nullptr ? convolution->input == kResult : choice.blocked_input;
      if ((makes_output && choice.blocked_output) || (makes_input && choice.blocked_input)) blocked_.insert({node, 0});
      if (node->op_name() == "_MaxPoolWithPlaces" && choice.blocked_input) blocked_.insert({node, 1});
    }
  }

  const std::vector<Node*>& order() const { return order_; }
  const std::set<ValueKey>& blocked() const { return blocked_; }
  const Choice& choice(const Node* node) const { return choices_.at(node); }

  // Returns true if `node` reads its input i in blocks. Call it only if the order matters to the node.
  bool ReadsBlocked(const Node& node, int i) const {
    const Choice& c = choices_.at(&node);
    if (const ConvolutionOp* op = FindConvolution(node)) {
      return (i == op->input && c.blocked_input) || (i == op->output && c.blocked_output);
    }
    if (const FollowerOp* op = FindFollower(node)) {
      return c.blocked_input && std::count(op->images.begin(), op->images.end(), i) > 0;
    }
    return c.blocked_input && (node.op().is_elementwise() || node.input(i).shape().rank() == 4);
  }

 private:
  bool IsBlocked(const Output& value) const { return blocked_.count(KeyOf(value)) > 0; }

  Choice Choose(const Node& node) const {
    if (const ConvolutionOp* op = FindConvolution(node)) return ChooseForConvolution(node, *op);
    if (const FollowerOp* op = FindFollower(node)) return {IsBlocked(node.input(op->leader)), false};
    const auto& inputs = node.inputs();
    const auto is_blocked = [&](const Output& input) { return IsBlocked(input); };
    if (std::none_of(inputs.begin(), inputs.end(), is_blocked)) return {};
    if (!IsElementwise(node)) return {};
    return {node.op().is_elementwise() || OnlyBatchesBroadcast(node), false};
  }

  // Returns true if all operands are single elements or images of one size. Blocked images then broadcast along the
  // batch like plain images.
  static bool OnlyBatchesBroadcast(const Node& node) {
    const Shape* first = nullptr;
    for (const Output& input : node.inputs()) {
      const Shape& shape = input.shape();
      if (shape.IsScalar()) continue;
      if (!shape.has_rank() || shape.rank() != 4 || shape.Sub(1, 4).num_elements() < 0) return false;
      if (first != nullptr && first->Sub(1, 4) != shape.Sub(1, 4)) return false;
      first = &shape;
    }
    return true;
  }

  const std::vector<Node*> order_;
  std::map<const Node*, Choice> choices_;
  std::set<ValueKey> blocked_;
};

}  // namespace

std::set<ValueKey> BlockedValues(const Graph& graph) { return OrderChooser(graph).blocked(); }

void ChooseOrders(Graph& graph, const std::string& device_type) {
  for (const char* op : {"_ToBlocked", "_FromBlocked"}) {
    if (!KernelRegistry::Global().Has(op, device_type)) return;
  }
  const OrderChooser chooser(graph);
  std::map<ValueKey, Output> converted;
  for (Node* node : chooser.order()) {
    const Choice& choice = chooser.choice(node);
    if (choice.blocked_input) node->SetAttr("_blocked_in", true);
    if (choice.blocked_output) node->SetAttr("_blocked_out", true);
    if (node->op().reads_shape_only()) continue;
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Output value = node->input(i);
      const bool wanted = chooser.ReadsBlocked(*node, i);
      if (wanted == (chooser.blocked().count(KeyOf(value)) > 0)) continue;
      Output& other = converted[KeyOf(value)];
      if (!other.valid()) {
        other = graph.Op(wanted ? "_ToBlocked" : "_FromBlocked")
                    .Name(StrCat(value.node->name(), wanted ? "/to_blocked" : "/from_blocked"))
                    .Input(value)
                    .Device(value.node->device())
                    .IgnoreScopes()
                    .Finish1();
      }
      node->ReplaceInput(i, other);
    }
  }
}

}  // namespace cohort
