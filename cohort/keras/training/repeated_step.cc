#include "cohort/keras/training/repeated_step.h"

#include <algorithm>
#include <map>
#include <set>

#include "cohort/graph/copy_node.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/random.h"

namespace cohort::keras {
namespace {

// Returns the nodes of the step in the order in which they were added. They end at the arguments, which are included.
std::vector<const Node*> NodesOf(const StepNodes& step) {
  std::set<const Node*> arguments;
  for (const Output& argument : step.arguments) arguments.insert(argument.node);
  std::vector<const Node*> stack(step.targets.begin(), step.targets.end());
  for (const Output& fetch : step.fetches) stack.push_back(fetch.node);
  std::set<const Node*> needed;
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!needed.insert(node).second || arguments.contains(node)) continue;
    for (const Output& input : node->inputs()) stack.push_back(input.node);
    for (const Node* control : node->control_inputs()) stack.push_back(control);
  }
  std::vector<const Node*> sorted(needed.begin(), needed.end());
  std::sort(sorted.begin(), sorted.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return sorted;
}

bool MakesHandle(const Node& node) {
  return node.num_inputs() == 0 && node.num_outputs() == 1 && node.output_dtype(0) == DType::kResource;
}

// Returns other seeds for the copy of a random op with a state: in a closure the numbers of such an op follow from its
// seeds and the closure's number, so that with equal seeds all steps of a closure would draw the same ones.
AttrMap SeedsOfCopy(const Node& node) {
  if (node.op().FindAttr("seed2") == nullptr) return {};
  const auto [first, second] = ops::SeedPair(node.graph(), 0);
  return {{"seed", first}, {"seed2", second}};
}

// Makes one copy of a step. The copies share what has no state and depends on no argument, such as constants.
class Copy {
 public:
  // The copy begins when `before` has run. The arguments have the values `arguments`.
  Copy(const StepNodes& one, const std::vector<const Node*>& nodes, const std::vector<Output>& arguments,
       Node* before) {
    for (size_t i = 0; i < arguments.size(); ++i) copies_[one.arguments[i].node] = arguments[i].node;
    for (const Node* node : nodes) {
      if (!copies_.contains(node)) Add(*node, before);
    }
  }
  Node* Of(Node* node) const {
    const auto found = copies_.find(node);
    return found == copies_.end() ? node : found->second;
  }
  Output Of(const Output& value) const { return {Of(value.node), value.index}; }

 private:
  void Add(const Node& node, Node* before) {
    const bool has_state = node.op().is_stateful() && !MakesHandle(node);
    bool differs = has_state;
    std::vector<Output> inputs;
    for (const Output& input : node.inputs()) {
      inputs.push_back(Of(input));
      differs = differs || inputs.back().node != input.node;
    }
    std::vector<Node*> controls;
    for (Node* control : node.control_inputs()) {
      controls.push_back(Of(control));
      differs = differs || controls.back() != control;
    }
    if (!differs) return;
    if (has_state) controls.push_back(before);
    copies_[&node] = CopyBeside(node, inputs, controls, has_state ? SeedsOfCopy(node) : AttrMap());
  }

  std::map<const Node*, Node*> copies_;
};

// Returns a node that has run when the step has ended.
Node* EndOf(Graph& graph, const std::vector<Output>& fetches, const std::vector<Node*>& targets) {
  std::vector<Node*> all = targets;
  for (const Output& fetch : fetches) all.push_back(fetch.node);
  return ops::Group(graph, all, "end_of_step");
}

}  // namespace

StepNodes Repeated(const StepNodes& one, int steps, size_t shared) {
  StepNodes all = one;
  Graph& graph = one.fetches.at(0).graph();
  const std::vector<const Node*> nodes = NodesOf(one);
  std::vector<Output> fetches = one.fetches;
  std::vector<Node*> targets = one.targets;
  for (int i = 1; i < steps; ++i) {
    Node* before = EndOf(graph, fetches, targets);
    std::vector<Output> arguments;
    for (size_t a = 0; a < one.arguments.size(); ++a) {
      const Output& argument = one.arguments[a];
      if (a < shared) {
        const Tensor index = argument.dtype() == DType::kInt64 ? Tensor::Scalar(int64_t{i}) : Tensor::Scalar(i);
        arguments.push_back(a == 0 ? ops::Add(argument, ops::Const(graph, index)) : argument);
      } else {
        arguments.push_back(ops::Placeholder(graph, argument.dtype(), argument.shape(), "argument"));
        all.arguments.push_back(arguments.back());
      }
    }
    const Copy copy(one, nodes, arguments, before);
    for (size_t f = 0; f < fetches.size(); ++f) fetches[f] = copy.Of(one.fetches[f]);
    for (size_t t = 0; t < targets.size(); ++t) targets[t] = copy.Of(one.targets[t]);
    all.fetches.insert(all.fetches.end(), fetches.begin(), fetches.end());
    all.targets.insert(all.targets.end(), targets.begin(), targets.end());
  }
  return all;
}

}  // namespace cohort::keras
