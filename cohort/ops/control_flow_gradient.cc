#include "cohort/ops/control_flow_gradient.h"

#include <algorithm>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/function_draft.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control_flow_nodes.h"
#include "cohort/ops/function_gradient.h"
#include "cohort/ops/state.h"
#include "cohort/ops/tensor_list.h"

namespace cohort::ops {
namespace {

using Outputs = std::vector<Output>;

// Numbers of the function's arguments that may have a gradient.
std::vector<int> ArgumentsWithGradient(const Function& function) {
  std::vector<int> numbers;
  for (size_t i = 0; i < function.args().size(); ++i) {
    const DType dtype = function.args()[i].dtype();
    if (CarriesGradient(dtype) || dtype == DType::kResource) numbers.push_back(static_cast<int>(i));
  }
  return numbers;
}

std::vector<FunctionArg> ArgumentsOf(const Function& function) {
  std::vector<FunctionArg> args;
  for (const Output& arg : function.args()) args.push_back(ArgumentLike(arg, arg.node->name()));
  return args;
}

// Of what is kept, that which a node has to hand out because it is no argument.
Outputs ExtraValues(const DifferentiatedBody& body) {
  Outputs extra;
  for (const DifferentiatedBody::Kept& kept : body.kept()) {
    if (kept.arg < 0) extra.push_back(kept.value);
  }
  return extra;
}

// The values of kept(): arguments from `args`, the others from `extra`, in turn.
Outputs KeptFrom(const DifferentiatedBody& body, const Outputs& args, const Outputs& extra) {
  Outputs values;
  size_t next = 0;
  for (const DifferentiatedBody::Kept& kept : body.kept()) {
    values.push_back(kept.arg < 0 ? extra.at(next++) : args.at(static_cast<size_t>(kept.arg)));
  }
  return values;
}

void Append(std::vector<FunctionArg>& args, const Outputs& values, const char* prefix, bool with_shape = true) {
  for (size_t i = 0; i < values.size(); ++i) {
    args.push_back(ArgumentLike(values[i], StrCat(prefix, i)));
    if (!with_shape) args.back().shape = Shape::UnknownRank();
  }
}

Outputs Part(const Outputs& values, size_t first, size_t count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
  return Outputs(begin, begin + static_cast<std::ptrdiff_t>(count));
}

// A function's gradient, kept with it.
struct CallDerivative {
  std::shared_ptr<const Function> forward;   // the function, with what is kept as further results
  std::shared_ptr<const Function> backward;  // of all arguments, what is kept and the gradients of results
  std::vector<int> with_gradient;            // arguments whose gradients are its results
  std::vector<std::shared_ptr<const Function>> functions;  // both, and what they call
};

// Appends `function` and what it calls, by the library of `graph`.
void Collect(const Graph& graph, const std::shared_ptr<const Function>& function,
             std::vector<std::shared_ptr<const Function>>& all) {
  if (function == nullptr || std::find(all.begin(), all.end(), function) != all.end()) return;
  all.push_back(function);
  for (const Node* node : function->graph().nodes()) {
    for (const std::string& name : CalledFunctions(*node)) Collect(graph, graph.FindFunction(name), all);
  }
}

std::shared_ptr<const CallDerivative> Derive(Graph& graph, const Function& function, const std::vector<int>& ys,
                                             const std::vector<int>& xs) {
  const DifferentiatedBody body(graph, function, ys, xs);
  const Outputs extra = ExtraValues(body);
  const size_t num_args = function.args().size(), num_results = function.results().size();
  auto derivative = std::make_shared<CallDerivative>();
  derivative->forward =
      DefineUnique(graph, function.name() + "_forward", ArgumentsOf(function), [&](Graph& g, const Outputs& args) {
        const Outputs all = body.AddForward(g, args);
        Outputs results = Part(all, 0, num_results);
        for (size_t i = 0; i < body.kept().size(); ++i) {
          if (body.kept()[i].arg < 0) results.push_back(all[num_results + i]);
        }
        return results;
      });
  for (size_t i = 0; i < xs.size(); ++i) {
    if (body.has_gradient(i)) derivative->with_gradient.push_back(xs[i]);
  }
  std::vector<FunctionArg> args = ArgumentsOf(function);
  Append(args, extra, "kept");
  for (const int y : ys)
    args.push_back(ArgumentLike(function.results()[static_cast<size_t>(y)], StrCat("gradient", y)));
  derivative->backward = DefineUnique(graph, function.name() + "_backward", args, [&](Graph& g, const Outputs& all) {
    const Outputs kept = KeptFrom(body, all, Part(all, num_args, extra.size()));
    Outputs results;
    for (const Output& gradient : body.AddBackward(g, kept, Part(all, num_args + extra.size(), ys.size()))) {
      if (gradient.valid()) results.push_back(gradient);
    }
    return results;
  });
  Collect(graph, derivative->forward, derivative->functions);
  Collect(graph, derivative->backward, derivative->functions);
  return derivative;
}

std::shared_ptr<const CallDerivative> DerivativeOf(Graph& graph, const Function& function, const std::vector<int>& ys,
                                                   const std::vector<int>& xs) {
  const std::string key = "gradient of " + StrJoin(ys, ",");
  auto known = std::static_pointer_cast<const CallDerivative>(function.FindDerived(key));
  if (known == nullptr) {
    known = Derive(graph, function, ys, xs);
    function.KeepDerived(key, known);
  }
  // The graph that it was made for may be another one, and gone.
  for (const auto& part : known->functions) {
    if (graph.FindFunction(part->name()) != part) graph.AddFunction(part);
  }
  return known;
}

// Something of the dtype for a branch that has nothing to hand out.
Output Nothing(Graph& graph, DType dtype) {
  if (dtype == DType::kVariant) return EmptyTensorList(graph, DType::kFloat32, Shape::UnknownRank());
  return Const(graph, Tensor::Zeros(dtype, Shape()));
}

// The two branches of an If, differentiated for the same results and arguments.
struct Branches {
  const DifferentiatedBody then_body, else_body;
  const Outputs then_extra = ExtraValues(then_body), else_extra = ExtraValues(else_body);

  bool has_gradient(size_t x) const { return then_body.has_gradient(x) || else_body.has_gradient(x); }
};

// The branch's results, then what the one and what the other branch keeps.
std::shared_ptr<const Function> ForwardBranch(Graph& graph, const Function& function, const Branches& branches,
                                              bool is_then) {
  const DifferentiatedBody& body = is_then ? branches.then_body : branches.else_body;
  return DefineUnique(graph, function.name() + "_forward", ArgumentsOf(function), [&](Graph& g, const Outputs& args) {
    const size_t num_results = function.results().size();
    const Outputs all = body.AddForward(g, args);
    Outputs results = Part(all, 0, num_results);
    const auto add_nothing = [&](const Outputs& extra) {
      for (const Output& value : extra) results.push_back(Nothing(g, value.dtype()));
    };
    if (!is_then) add_nothing(branches.then_extra);
    for (size_t i = 0; i < body.kept().size(); ++i) {
      if (body.kept()[i].arg < 0) results.push_back(all[num_results + i]);
    }
    if (is_then) add_nothing(branches.else_extra);
    return results;
  });
}

// Of the inputs, what both branches keep, and the gradients of results `ys`: the gradients of those `xs` that have one
// in either branch.
std::shared_ptr<const Function> BackwardBranch(Graph& graph, const Function& function, const Branches& branches,
                                               const std::vector<int>& ys, const std::vector<int>& xs, bool is_then) {
  const DifferentiatedBody& body = is_then ? branches.then_body : branches.else_body;
  const size_t num_args = function.args().size();
  const size_t num_then = branches.then_extra.size(), num_else = branches.else_extra.size();
  std::vector<FunctionArg> args = ArgumentsOf(function);
  Append(args, branches.then_extra, "then", is_then);
  Append(args, branches.else_extra, "else", !is_then);
  for (const int y : ys)
    args.push_back(ArgumentLike(function.results()[static_cast<size_t>(y)], StrCat("gradient", y)));
  return DefineUnique(graph, function.name() + "_backward", args, [&](Graph& g, const Outputs& all) {
    const Outputs extra = is_then ? Part(all, num_args, num_then) : Part(all, num_args + num_then, num_else);
    const Outputs gradients =
        body.AddBackward(g, KeptFrom(body, all, extra), Part(all, num_args + num_then + num_else, ys.size()));
    Outputs results;
    for (size_t i = 0; i < xs.size(); ++i) {
      if (!branches.has_gradient(i)) continue;
      results.push_back(gradients[i].valid() ? gradients[i] : ZerosFor(all[static_cast<size_t>(xs[i])]));
    }
    return results;
  });
}

}  // namespace

std::vector<int> OutputsWithGradient(const GradientContext& c) {
  std::vector<int> numbers;
  for (int i = 0; i < c.node().num_outputs(); ++i) {
    if (c.has_grad(i) && CarriesGradient(c.node().output_dtype(i))) numbers.push_back(i);
  }
  return numbers;
}

Output ZerosFor(Output value) {
  if (value.dtype() != DType::kResource) return ZerosLike(value);
  Graph& graph = value.graph();
  return Fill(VariableShape(value), Const(graph, Tensor::Zeros(VariableDType(value), Shape())));
}

void CallGradient(GradientContext& c) {
  Graph& graph = c.graph();
  Node& node = *c.output(0).node;
  const std::shared_ptr<const Function> function = FunctionOf(node, "f");
  const std::vector<int> ys = OutputsWithGradient(c);
  const std::vector<int> xs = ArgumentsWithGradient(*function);
  if (ys.empty() || xs.empty()) return;
  const std::shared_ptr<const CallDerivative> derivative = DerivativeOf(graph, *function, ys, xs);
  if (derivative->with_gradient.empty()) return;

  const int num_results = node.num_outputs();
  AttrMap attrs = node.attrs();
  attrs["f"] = FunctionName{derivative->forward->name()};
  attrs["Tout"] = DTypesOf(derivative->forward->results());
  attrs["_output_shapes"] = ShapesOf(derivative->forward->results());
  graph.Op(node.op_name()).Inputs(node.inputs()).Attrs(attrs).Redefine(node);

  Outputs inputs = node.inputs();
  for (int i = num_results; i < node.num_outputs(); ++i) inputs.push_back(node.output(i));
  for (const int y : ys) inputs.push_back(c.grad(y));
  const Node* gradient = AddCall(graph, inputs, *derivative->backward, "PartitionedCall");
  for (size_t i = 0; i < derivative->with_gradient.size(); ++i) {
    c.SetInput(derivative->with_gradient[i], gradient->output(static_cast<int>(i)));
  }
}

void IfGradient(GradientContext& c) {
  Graph& graph = c.graph();
  Node& node = *c.output(0).node;
  const std::shared_ptr<const Function> then_function = FunctionOf(node, "then_branch");
  const std::shared_ptr<const Function> else_function = FunctionOf(node, "else_branch");
  const std::vector<int> ys = OutputsWithGradient(c);
  const std::vector<int> xs = ArgumentsWithGradient(*then_function);
  if (ys.empty() || xs.empty()) return;
  const Branches branches{{graph, *then_function, ys, xs}, {graph, *else_function, ys, xs}};

  const int num_results = node.num_outputs();
  const auto then_forward = ForwardBranch(graph, *then_function, branches, true);
  const auto else_forward = ForwardBranch(graph, *else_function, branches, false);
  std::vector<Shape> shapes;
  shapes.reserve(then_forward->results().size());
  for (int i = 0; i < num_results; ++i) shapes.push_back(node.output_shape(i));
  shapes.resize(then_forward->results().size(), Shape::UnknownRank());
  AttrMap attrs = node.attrs();
  attrs["then_branch"] = FunctionName{then_forward->name()};
  attrs["else_branch"] = FunctionName{else_forward->name()};
  attrs["Tout"] = DTypesOf(then_forward->results());
  attrs["output_shapes"] = shapes;
  const Outputs args = Part(node.inputs(), 1, node.inputs().size() - 1);
  graph.Op(node.op_name()).Input(node.input(0)).Inputs(args).Attrs(attrs).Redefine(node);

  Outputs inputs = args;
  for (int i = num_results; i < node.num_outputs(); ++i) inputs.push_back(node.output(i));
  for (const int y : ys) inputs.push_back(c.grad(y));
  std::vector<int> with_gradient;
  std::vector<Shape> gradient_shapes;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!branches.has_gradient(i)) continue;
    with_gradient.push_back(xs[i]);
    const Output& arg = args[static_cast<size_t>(xs[i])];
    gradient_shapes.push_back(arg.dtype() == DType::kResource ? Shape::UnknownRank() : arg.shape());
  }
  if (with_gradient.empty()) return;
  const Node* gradient =
      AddIf(graph, node.input(0), inputs, *BackwardBranch(graph, *then_function, branches, ys, xs, true),
            *BackwardBranch(graph, *else_function, branches, ys, xs, false), gradient_shapes, "cond");
  for (size_t i = 0; i < with_gradient.size(); ++i) {
    c.SetInput(1 + with_gradient[i], gradient->output(static_cast<int>(i)));
  }
}

}  // namespace cohort::ops
