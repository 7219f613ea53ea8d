#include "cohort/ops/function_gradient.h"

#include <algorithm>
#include <map>

#include "cohort/core/str_cat.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/function_draft.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/topological_order.h"

namespace cohort::ops {
namespace {

using Values = std::map<std::pair<const Node*, int>, Output>;

bool IsSmallInteger(const Node& node) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (node.output_dtype(i) != DType::kInt32 && node.output_dtype(i) != DType::kInt64) return false;
  }
  return node.num_outputs() > 0 && node.num_inputs() > 0 && !node.op().is_stateful();
}

// Copies `node` where all its inputs have values; its control inputs where they have been copied.
void CopyInto(Graph& graph, const Node& node, Values& values, std::unordered_map<const Node*, Node*>& copies) {
  std::vector<Output> inputs;
  for (const Output& input : node.inputs()) inputs.push_back(values.at({input.node, input.index}));
  std::vector<Node*> controls;
  for (const Node* control : node.control_inputs()) {
    if (const auto copy = copies.find(control); copy != copies.end()) controls.push_back(copy->second);
  }
  Node* copy = CopyIntoBody(graph, node, inputs, controls);
  copies[&node] = copy;
  for (int i = 0; i < node.num_outputs(); ++i) values[{&node, i}] = copy->output(i);
}

}  // namespace

std::vector<Output> CopyBody(const Function& function, Graph& graph, const std::vector<Output>& args) {
  Values values;
  std::unordered_map<const Node*, Node*> copies;
  for (size_t i = 0; i < function.args().size(); ++i) {
    values[{function.args()[i].node, 0}] = args.at(i);
    copies[function.args()[i].node] = args.at(i).node;
  }
  for (const Node* node : TopologicalOrder(function.graph())) {
    if (copies.count(node) == 0) CopyInto(graph, *node, values, copies);
  }
  std::vector<Output> results;
  for (const Output& result : function.results()) results.push_back(values.at({result.node, result.index}));
  return results;
}

DifferentiatedBody::DifferentiatedBody(Graph& owner, const Function& function, const std::vector<int>& ys,
                                       const std::vector<int>& xs)
    : work_(owner.NewBody()) {
  work_->CloseBody();
  for (const Output& arg : function.args()) args_.push_back(AddArgument(*work_, ArgumentLike(arg, arg.node->name())));
  results_ = CopyBody(function, *work_, args_);
  for (const Node* node : work_->nodes()) forward_.insert(node);
  std::vector<Output> y_values, x_values;
  for (const int y : ys) {
    y_values.push_back(results_[static_cast<size_t>(y)]);
    y_gradients_.push_back(
        AddArgument(*work_, {y_values.back().dtype(), y_values.back().shape(), StrCat("gradient", y)}));
  }
  for (const int x : xs) x_values.push_back(args_[static_cast<size_t>(x)]);
  for (const Gradient& gradient : Gradients(y_values, x_values, y_gradients_)) {
    gradients_.push_back(gradient.exists() ? ToDense(gradient) : Output{});
  }
  order_ = TopologicalOrder(*work_);
  ChooseForward();
  FindKept();
}

void DifferentiatedBody::NeedForward(Node* node) {
  std::vector<Node*> stack = {node};
  while (!stack.empty()) {
    Node* next = stack.back();
    stack.pop_back();
    forward_.insert(next);
    for (const Output& input : next->inputs()) {
      if (forward_.count(input.node) == 0) stack.push_back(input.node);
    }
  }
}

// The function's own nodes, what these have been given to keep for their gradients (stacks of nested loops), and what
// is known of shapes, which is less to keep than the values.
void DifferentiatedBody::ChooseForward() {
  const std::vector<Node*> nodes = work_->nodes();
  for (Node* node : nodes) {
    if (forward_.count(node) > 0) NeedForward(node);
  }
  for (Node* node : order_) {
    const auto is_forward = [this](const Output& input) { return forward_.count(input.node) > 0; };
    if (IsSmallInteger(*node) && std::all_of(node->inputs().begin(), node->inputs().end(), is_forward)) {
      forward_.insert(node);
    }
  }
}

bool DifferentiatedBody::IsRepeated(const Node& node) {
  return node.num_inputs() == 0 &&
         (node.op_name() == "Const" ||
          (node.num_outputs() == 1 && node.output_dtype(0) == DType::kResource && node.op_name() != "Placeholder"));
}

void DifferentiatedBody::FindKept() {
  std::vector<const Node*> stack;
  const auto read = [&](const Output& value) {
    if (forward_.count(value.node) == 0 || IsRepeated(*value.node)) {
      if (backward_.insert(value.node).second) stack.push_back(value.node);
      return;
    }
    const auto same = [&value](const Kept& kept) { return kept.value == value; };
    if (std::any_of(kept_.begin(), kept_.end(), same)) return;
    const auto arg = std::find(args_.begin(), args_.end(), value);
    kept_.push_back({value, arg == args_.end() ? -1 : static_cast<int>(arg - args_.begin())});
  };
  for (const Output& gradient : gradients_) {
    if (gradient.valid()) read(gradient);
  }
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Output& input : node->inputs()) read(input);
    for (Node* control : node->control_inputs()) {
      if (forward_.count(control) == 0 && backward_.insert(control).second) stack.push_back(control);
    }
  }
}

std::vector<Output> DifferentiatedBody::AddForward(Graph& graph, const std::vector<Output>& args) const {
  Values values;
  Copies copies;
  for (size_t i = 0; i < args_.size(); ++i) {
    values[{args_[i].node, 0}] = args.at(i);
    copies[args_[i].node] = args.at(i).node;
  }
  for (const Node* node : order_) {
    if (forward_.count(node) > 0 && copies.count(node) == 0) CopyInto(graph, *node, values, copies);
  }
  std::vector<Output> outputs;
  for (const Output& result : results_) outputs.push_back(values.at({result.node, result.index}));
  for (const Kept& kept : kept_) outputs.push_back(values.at({kept.value.node, kept.value.index}));
  return outputs;
}

std::vector<Output> DifferentiatedBody::AddBackward(Graph& graph, const std::vector<Output>& kept,
                                                    const std::vector<Output>& y_gradients) const {
  Values values;
  Copies copies;
  for (size_t i = 0; i < kept_.size(); ++i) values[{kept_[i].value.node, kept_[i].value.index}] = kept.at(i);
  for (size_t i = 0; i < y_gradients_.size(); ++i) {
    values[{y_gradients_[i].node, 0}] = y_gradients.at(i);
    copies[y_gradients_[i].node] = y_gradients.at(i).node;
  }
  for (const Node* node : order_) {
    if (backward_.count(node) > 0 && copies.count(node) == 0) CopyInto(graph, *node, values, copies);
  }
  std::vector<Output> outputs;
  for (const Output& gradient : gradients_) {
    outputs.push_back(gradient.valid() ? values.at({gradient.node, gradient.index}) : Output{});
  }
  return outputs;
}

}  // namespace cohort::ops
