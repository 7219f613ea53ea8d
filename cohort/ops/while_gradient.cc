#include <algorithm>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"
#include "cohort/graph/function_draft.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control_flow_gradient.h"
#include "cohort/ops/control_flow_nodes.h"
#include "cohort/ops/function_gradient.h"
#include "cohort/ops/tensor_list.h"

namespace cohort::ops {
namespace {

using Outputs = std::vector<Output>;

// Arguments on which `result` depends along values that carry gradients.
std::set<int> DependsOn(const Function& function, const Output& result) {
  std::set<const Node*> seen = {result.node};
  std::vector<const Node*> stack = {result.node};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Output& input : node->inputs()) {
      if (CarriesGradient(input.dtype()) && seen.insert(input.node).second) stack.push_back(input.node);
    }
  }
  std::set<int> args;
  for (size_t i = 0; i < function.args().size(); ++i) {
    if (CarriesGradient(function.args()[i].dtype()) && seen.count(function.args()[i].node) > 0) {
      args.insert(static_cast<int>(i));
    }
  }
  return args;
}

// The loop variables that have a gradient in some iteration, given those that have one after the last.
std::vector<int> ActiveVariables(const Function& body, const std::vector<int>& at_the_end) {
  std::set<int> active;
  std::vector<int> next = at_the_end;
  while (!next.empty()) {
    const int variable = next.back();
    next.pop_back();
    if (!active.insert(variable).second) continue;
    for (const int arg : DependsOn(body, body.results()[static_cast<size_t>(variable)])) next.push_back(arg);
  }
  return {active.begin(), active.end()};
}

// One While and the loop that goes back through its iterations.
class LoopGradient {
 public:
  LoopGradient(GradientContext& c, std::vector<int> active)
      : c_(c),
        graph_(c.graph()),
        node_(*c.output(0).node),
        cond_(FunctionOf(node_, "cond")),
        body_(FunctionOf(node_, "body")),
        num_variables_(static_cast<size_t>(node_.num_inputs())),
        active_(std::move(active)),
        handles_(Handles()),
        derivative_(graph_, *body_, active_, Join(active_, handles_)) {
    for (size_t i = 0; i < handles_.size(); ++i) {
      if (derivative_.has_gradient(active_.size() + i)) trained_.push_back(i);
    }
    for (const DifferentiatedBody::Kept& kept : derivative_.kept()) {
      (IsConstantHandle(kept) ? constant_handles_ : stacked_).push_back(kept);
    }
  }

  void Add() {
    KeepForward();
    const Node* loop = AddBackward();
    const int first = 1 + static_cast<int>(stacked_.size());
    for (size_t i = 0; i < active_.size(); ++i) {
      c_.SetInput(active_[i], loop->output(first + static_cast<int>(i)));
    }
    for (size_t i = 0; i < trained_.size(); ++i) {
      c_.SetInput(handles_[trained_[i]], loop->output(first + static_cast<int>(active_.size() + i)));
    }
  }

 private:
  using Kept = DifferentiatedBody::Kept;

  static std::vector<int> Join(std::vector<int> a, const std::vector<int>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  std::vector<int> Handles() const {
    std::vector<int> handles;
    for (size_t i = 0; i < num_variables_; ++i) {
      if (node_.input(static_cast<int>(i)).dtype() == DType::kResource) handles.push_back(static_cast<int>(i));
    }
    return handles;
  }
  static bool IsConstantHandle(const Kept& kept) { return kept.arg >= 0 && kept.value.dtype() == DType::kResource; }

  // Lets the loop count its iterations and push what each has to keep.
  void KeepForward() {
    std::vector<FunctionArg> args;
    for (const Output& arg : body_->args()) args.push_back(ArgumentLike(arg, arg.node->name()));
    args.push_back({DType::kInt32, Shape(), "iterations"});
    for (size_t i = 0; i < stacked_.size(); ++i) args.push_back({DType::kVariant, Shape(), StrCat("stack", i)});
    const auto body = DefineUnique(graph_, body_->name() + "_forward", args, [&](Graph& g, const Outputs& all) {
      const Outputs values = derivative_.AddForward(g, Outputs(all.begin(), all.begin() + Offset(num_variables_)));
      Outputs results(values.begin(), values.begin() + Offset(num_variables_));
      results.push_back(ops::Add(all[num_variables_], Const(g, 1)));
      size_t stack = num_variables_ + 1;
      for (size_t i = 0; i < derivative_.kept().size(); ++i) {
        if (IsConstantHandle(derivative_.kept()[i])) continue;
        results.push_back(TensorListPushBack(all[stack++], values[num_variables_ + i]));
      }
      return results;
    });
    const auto cond = DefineUnique(graph_, cond_->name() + "_forward", args, [&](Graph& g, const Outputs& all) {
      return CopyBody(*cond_, g, Outputs(all.begin(), all.begin() + Offset(num_variables_)));
    });
    Outputs inputs = node_.inputs();
    std::vector<Shape> shapes;
    shapes.reserve(static_cast<size_t>(node_.num_outputs()) + 1 + stacked_.size());
    for (int i = 0; i < node_.num_outputs(); ++i) shapes.push_back(node_.output_shape(i));
    inputs.push_back(Const(graph_, 0));
    shapes.emplace_back();
    for (const Kept& kept : stacked_) {
      inputs.push_back(EmptyTensorList(graph_, kept.value.dtype(), kept.value.shape()));
      shapes.emplace_back();
    }
    AttrMap attrs = node_.attrs();
    attrs.erase("T");
    attrs["body"] = FunctionName{body->name()};
    attrs["cond"] = FunctionName{cond->name()};
    attrs["output_shapes"] = shapes;
    graph_.Op(node_.op_name()).Inputs(inputs).Attrs(attrs).Redefine(node_);
  }

  // Loop variables of the way back: iterations left, stacks, gradients of the active variables, sums of the gradients
  // of handles, and handles that it reads.
  Node* AddBackward() {
    Outputs inputs;
    std::vector<Shape> shapes;
    std::vector<FunctionArg> args;
    const auto add = [&](const Output& input, const Shape& shape, const char* name) {
      inputs.push_back(input);
      shapes.push_back(shape);
      args.push_back(ArgumentLike(input, StrCat(name, args.size())));
      args.back().shape = shape;
    };
    const int count = static_cast<int>(num_variables_);
    add(node_.output(count), Shape(), "left");
    for (size_t i = 0; i < stacked_.size(); ++i) add(node_.output(count + 1 + static_cast<int>(i)), Shape(), "stack");
    for (const int variable : active_) add(c_.grad(variable), node_.output_shape(variable), "gradient");
    for (const size_t i : trained_) {
      const Output& handle = node_.input(handles_[i]);
      add(ZerosFor(handle), HandleShape(handle), "sum");
    }
    for (const Kept& kept : constant_handles_) add(node_.input(kept.arg), Shape(), "handle");
    const auto cond = DefineUnique(graph_, cond_->name() + "_backward", args,
                                   [](Graph& g, const Outputs& all) { return Outputs{Greater(all[0], Const(g, 0))}; });
    const auto body = DefineUnique(graph_, body_->name() + "_backward", args,
                                   [this](Graph& g, const Outputs& all) { return BackwardBody(g, all); });
    return AddWhile(graph_, inputs, *cond, *body, shapes, node_.attr<int64_t>("parallel_iterations"), "while");
  }

  Outputs BackwardBody(Graph& g, const Outputs& all) const {
    Outputs results = {ops::Sub(all[0], Const(g, 1))};
    const size_t first_gradient = 1 + stacked_.size();
    const size_t first_sum = first_gradient + active_.size();
    const size_t first_handle = first_sum + trained_.size();
    Outputs kept;
    size_t stack = 1;
    size_t handle = first_handle;
    for (const Kept& value : derivative_.kept()) {
      if (IsConstantHandle(value)) {
        kept.push_back(all[handle++]);
        continue;
      }
      const PoppedTensor popped = TensorListPopBack(all[stack++], value.value.dtype(), value.value.shape());
      results.push_back(popped.list);
      kept.push_back(popped.tensor);
    }
    const Outputs y_gradients(all.begin() + Offset(first_gradient), all.begin() + Offset(first_sum));
    const Outputs gradients = derivative_.AddBackward(g, kept, y_gradients);
    for (size_t i = 0; i < active_.size(); ++i) {
      results.push_back(gradients[i].valid() ? gradients[i] : ZerosLike(y_gradients[i]));
    }
    for (size_t i = 0; i < trained_.size(); ++i) {
      results.push_back(ops::Add(all[first_sum + i], gradients[active_.size() + trained_[i]]));
    }
    results.insert(results.end(), all.begin() + Offset(first_handle), all.end());
    return results;
  }

  static std::ptrdiff_t Offset(size_t n) { return static_cast<std::ptrdiff_t>(n); }

  GradientContext& c_;
  Graph& graph_;
  Node& node_;
  const std::shared_ptr<const Function> cond_;
  const std::shared_ptr<const Function> body_;
  const size_t num_variables_;
  const std::vector<int> active_;
  const std::vector<int> handles_;  // loop variables that are handles
  const DifferentiatedBody derivative_;
  std::vector<size_t> trained_;  // those of handles_ that have a gradient
  std::vector<Kept> stacked_;
  std::vector<Kept> constant_handles_;
};

}  // namespace

void WhileGradient(GradientContext& c) {
  const std::shared_ptr<const Function> body = FunctionOf(c.node(), "body");
  const std::vector<int> active = ActiveVariables(*body, OutputsWithGradient(c));
  for (const int i : active) {
    if (c.node().output_dtype(i) != DType::kVariant) continue;
    throw UnimplementedError(StrCat("[ops/control_flow] the gradient of ", c.node().Describe(),
                                    " would flow through loop variable ", i,
                                    ", a list of tensors (as a second derivative's does); that is not there"));
  }
  if (!active.empty()) LoopGradient(c, active).Add();
}

}  // namespace cohort::ops
