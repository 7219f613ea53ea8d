#include "cohort/ops/control_flow.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/function_draft.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control_flow_gradient.h"
#include "cohort/ops/control_flow_nodes.h"
#include "cohort/ops/register.h"

namespace cohort {
namespace {

using Outputs = std::vector<Output>;
using ops::DTypesOf;

std::vector<FunctionArg> ArgumentsLike(const Outputs& values) {
  std::vector<FunctionArg> args;
  for (const Output& value : values) args.push_back(ArgumentLike(value));
  return args;
}
Outputs Join(Outputs values, const Outputs& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

// All captures of both, those of `a` first, so that both functions take the same ones.
Outputs ShareCaptures(FunctionDraft& a, FunctionDraft& b) {
  Outputs all = a.captures();
  for (const Output& value : b.captures()) {
    if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
  }
  a.SetCaptures(all);
  b.SetCaptures(all);
  return all;
}

Outputs OutputsOf(Node* node, int first, int end) {
  Outputs outputs;
  for (int i = first; i < end; ++i) outputs.push_back(node->output(i));
  return outputs;
}

bool StaysWithin(const Shape& shape, const Shape& invariant) { return shape.CommonWith(invariant) == invariant; }

std::vector<Shape> AttrShapes(const ShapeContext& c, const char* attr, size_t count, const char* of) {
  const std::vector<Shape>& shapes = c.attr<std::vector<Shape>>(attr);
  if (shapes.size() != count) {
    throw InvalidArgumentError(StrCat("expected in '", attr, "' a shape for each of ", count, " ", of, "; got ",
                                      AttrValue(shapes).ToString()));
  }
  return shapes;
}

// TensorFlow writes the shapes of results that it knows into "_output_shapes".
std::vector<Shape> CallShapes(ShapeContext& c) {
  const size_t count = c.attr<std::vector<DType>>("Tout").size();
  if (count == 0 || !c.has_attr("_output_shapes")) return std::vector<Shape>(count, Shape::UnknownRank());
  return AttrShapes(c, "_output_shapes", count, "results");
}

std::vector<Shape> IfShapes(ShapeContext& c) {
  const size_t count = c.attr<std::vector<DType>>("Tout").size();
  if (c.attr<std::vector<Shape>>("output_shapes").empty()) return std::vector<Shape>(count, Shape::UnknownRank());
  return AttrShapes(c, "output_shapes", count, "results");
}

std::vector<Shape> WhileShapes(ShapeContext& c) {
  const auto count = static_cast<size_t>(c.num_inputs());
  std::vector<Shape> inputs;
  for (size_t i = 0; i < count; ++i) inputs.push_back(c.input(static_cast<int>(i)));
  if (c.attr<std::vector<Shape>>("output_shapes").empty()) return inputs;
  return AttrShapes(c, "output_shapes", count, "loop variables");
}

void CheckCondition(const FunctionDraft& cond, const NodeName& name) {
  if (cond.results().size() == 1 && cond.results()[0].dtype() == DType::kBool &&
      cond.results()[0].shape().IsCompatibleWith(Shape())) {
    return;
  }
  std::vector<std::string> got;
  for (const Output& result : cond.results()) got.push_back(StrCat(result.dtype(), result.shape()));
  throw InvalidArgumentError(StrCat("[ops/control_flow] expected one bool scalar of the condition of '", name,
                                    "'; got (", StrJoin(got, ", "), ")"));
}

// `count` results, of the loop variables' dtypes and within their shapes.
void CheckBody(const Outputs& results, const std::vector<FunctionArg>& variables, const NodeName& name) {
  if (results.size() != variables.size()) {
    throw InvalidArgumentError(StrCat("[ops/control_flow] the body of '", name, "' has ", results.size(),
                                      " results for ", variables.size(), " loop variables"));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const FunctionArg& variable = variables[i];
    if (results[i].dtype() != variable.dtype) {
      throw InvalidArgumentError(StrCat("[ops/control_flow] loop variable ", i, " of '", name, "' is ", variable.dtype,
                                        "; the body makes ", results[i].dtype(), " of it"));
    }
    if (StaysWithin(results[i].shape(), variable.shape)) continue;
    throw InvalidArgumentError(StrCat("[ops/control_flow] loop variable ", i, " of '", name, "' enters with shape ",
                                      variable.shape, ", but has shape ", results[i].shape(),
                                      " after one iteration; give a less specific one in shape_invariants"));
  }
}

std::vector<FunctionArg> LoopVariables(const Outputs& inputs, const ops::WhileOptions& options) {
  std::vector<FunctionArg> variables = ArgumentsLike(inputs);
  const std::vector<Shape>& invariants = options.shape_invariants;
  if (!invariants.empty() && invariants.size() != inputs.size()) {
    throw InvalidArgumentError(StrCat("[ops/control_flow] expected a shape invariant for each of ", inputs.size(),
                                      " loop variables of '", options.name, "'; got ", invariants.size()));
  }
  for (size_t i = 0; i < invariants.size(); ++i) {
    if (!StaysWithin(inputs[i].shape(), invariants[i])) {
      throw InvalidArgumentError(StrCat("[ops/control_flow] the shape invariant ", invariants[i],
                                        " does not hold for loop variable ", i, " of '", options.name,
                                        "', which begins with shape ", inputs[i].shape()));
    }
    variables[i].shape = invariants[i];
  }
  return variables;
}

OpDef CallOp(const char* name) {
  return OpDef(name)
      .Input("args: Tin")
      .Output("output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("f: func")
      .Attr("config: string = ''")
      .Attr("config_proto: string = ''")
      .Attr("executor_type: string = ''")
      .ShapeRule(CallShapes)
      .Gradient(ops::CallGradient)
      .Doc("The results of the function `f` of `args`. Its body runs on the device of this node.");
}

OpDef IfOp(const char* name) {
  return OpDef(name)
      .HostInput("cond: Tcond")
      .Input("input: Tin")
      .Output("output: Tout")
      .Attr("Tcond: type")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("then_branch: func")
      .Attr("else_branch: func")
      .Attr("output_shapes: list(shape) = []")
      .ShapeRule(IfShapes)
      .Gradient(ops::IfGradient)
      .Doc(
          "The results of `then_branch` of `input` where `cond` is true (a scalar by its value, anything else where it "
          "has elements), else of `else_branch`.");
}

OpDef WhileOp(const char* name) {
  return OpDef(name)
      .Input("input: T")
      .Output("output: T")
      .Attr("T: list(type) >= 0")
      .Attr("cond: func")
      .Attr("body: func")
      .Attr("output_shapes: list(shape) = []")
      .Attr("parallel_iterations: int = 10")
      .ShapeRule(WhileShapes)
      .Gradient(ops::WhileGradient)
      .Doc("Loop variables, `input` at first, are replaced by `body` of them while `cond` of them is true.");
}

}  // namespace

namespace ops {

std::vector<DType> DTypesOf(const Outputs& values) {
  std::vector<DType> dtypes;
  for (const Output& value : values) dtypes.push_back(value.dtype());
  return dtypes;
}

std::vector<Shape> ShapesOf(const Outputs& values) {
  std::vector<Shape> shapes;
  for (const Output& value : values) shapes.push_back(value.shape());
  return shapes;
}

Node* AddCall(Graph& graph, const Outputs& inputs, const Function& function, const NodeName& name) {
  return graph.Op(function.is_stateful() ? "StatefulPartitionedCall" : "PartitionedCall")
      .Name(name)
      .Inputs(inputs)
      .Attr("f", FunctionName{function.name()})
      .Attr("Tout", DTypesOf(function.results()))
      .Attr("_output_shapes", ShapesOf(function.results()))
      .Finish();
}

Node* AddIf(Graph& graph, Output cond, const Outputs& inputs, const Function& then_branch, const Function& else_branch,
            const std::vector<Shape>& shapes, const NodeName& name) {
  return graph.Op(then_branch.is_stateful() || else_branch.is_stateful() ? "If" : "StatelessIf")
      .Name(name)
      .Input(cond)
      .Inputs(inputs)
      .Attr("Tout", DTypesOf(then_branch.results()))
      .Attr("then_branch", FunctionName{then_branch.name()})
      .Attr("else_branch", FunctionName{else_branch.name()})
      .Attr("output_shapes", shapes)
      .Finish();
}

Node* AddWhile(Graph& graph, const Outputs& inputs, const Function& cond, const Function& body,
               const std::vector<Shape>& shapes, int64_t parallel_iterations, const NodeName& name) {
  return graph.Op(cond.is_stateful() || body.is_stateful() ? "While" : "StatelessWhile")
      .Name(name)
      .Inputs(inputs)
      .Attr("cond", FunctionName{cond.name()})
      .Attr("body", FunctionName{body.name()})
      .Attr("output_shapes", shapes)
      .Attr("parallel_iterations", parallel_iterations)
      .Finish();
}

std::shared_ptr<const Function> FunctionOf(const Node& node, const char* attr) {
  const std::string& name = node.attr<FunctionName>(attr).name;
  std::shared_ptr<const Function> function = node.graph().FindFunction(name);
  if (function == nullptr) {
    throw NotFoundError(
        StrCat("[ops/control_flow] ", node.Describe(), " calls the function '", name, "', which the library lacks"));
  }
  return function;
}

std::shared_ptr<const Function> DefineUnique(Graph& graph, const std::string& name,
                                             const std::vector<FunctionArg>& args, const FunctionBody& body) {
  const std::string unique = graph.UniqueFunctionName(name);
  graph.DefineFunction(unique, args, body);
  return graph.FindFunction(unique);
}

Outputs Call(Graph& graph, const std::shared_ptr<const Function>& function, const Outputs& inputs,
             const NodeName& name) {
  if (function == nullptr) throw InvalidArgumentError("[ops/control_flow] expected a function to call; got none");
  if (DTypesOf(inputs) != DTypesOf(function->args())) {
    throw InvalidArgumentError(StrCat("[ops/control_flow] expected arguments for ", function->Signature(), "; got ",
                                      AttrValue(DTypesOf(inputs)).ToString()));
  }
  AddFunctionAndCallees(function, graph);
  Node* node = AddCall(graph, inputs, *function, name);
  return OutputsOf(node, 0, node->num_outputs());
}

Outputs Call(Graph& graph, const Outputs& inputs, const FunctionBody& body, const NodeName& name) {
  FunctionDraft draft(graph, name, ArgumentsLike(inputs), body);
  const Outputs all = Join(inputs, draft.captures());
  return Call(graph, draft.Finish(graph.UniqueFunctionName(graph.UniqueName(name.text() + "_function"))), all, name);
}

Outputs If(Output cond, const Outputs& inputs, const FunctionBody& then_body, const FunctionBody& else_body,
           const NodeName& name) {
  Graph& graph = InnermostGraph(Join({cond}, inputs));
  FunctionDraft then_draft(graph, name.text() + "_true", ArgumentsLike(inputs), then_body);
  FunctionDraft else_draft(graph, name.text() + "_false", ArgumentsLike(inputs), else_body);
  if (DTypesOf(then_draft.results()) != DTypesOf(else_draft.results())) {
    throw InvalidArgumentError(StrCat("[ops/control_flow] expected results of the same dtypes from both branches of '",
                                      name.text(), "'; got ", AttrValue(DTypesOf(then_draft.results())).ToString(),
                                      " and ", AttrValue(DTypesOf(else_draft.results())).ToString()));
  }
  const Outputs captures = ShareCaptures(then_draft, else_draft);
  std::vector<Shape> shapes;
  for (size_t i = 0; i < then_draft.results().size(); ++i) {
    shapes.push_back(then_draft.results()[i].shape().CommonWith(else_draft.results()[i].shape()));
  }
  const auto then_function = then_draft.Finish(graph.UniqueFunctionName(name.text() + "_true"));
  const auto else_function = else_draft.Finish(graph.UniqueFunctionName(name.text() + "_false"));
  Node* node = AddIf(graph, cond, Join(inputs, captures), *then_function, *else_function, shapes, name);
  return OutputsOf(node, 0, node->num_outputs());
}

// The first two loop variables are TensorFlow's, by which it finds its way in loops that it differentiates: the number
// of iterations done, and the largest one allowed.
Outputs While(const Outputs& inputs, const FunctionBody& cond, const FunctionBody& body, const WhileOptions& options,
              CallSite site) {
  if (inputs.empty()) throw InvalidArgumentError("[ops/control_flow] expected a loop variable; got none");
  Graph& graph = InnermostGraph(inputs);
  const std::vector<FunctionArg> variables = LoopVariables(inputs, options);
  std::vector<FunctionArg> args = {{DType::kInt32, Shape(), "loop_counter"}, {DType::kInt32, Shape(), "maximum"}};
  args.insert(args.end(), variables.begin(), variables.end());
  const bool limited = options.maximum_iterations >= 0;

  FunctionDraft cond_draft(graph, options.name + "_cond", args, [&](Graph& g, const Outputs& all) {
    Outputs go_on = cond(g, Outputs(all.begin() + 2, all.end()));
    if (limited && go_on.size() == 1) go_on = {ops::LogicalAnd(ops::Less(all[0], all[1]), go_on[0])};
    return go_on;
  });
  CheckCondition(cond_draft, options.name);
  FunctionDraft body_draft(graph, options.name + "_body", args, [&](Graph& g, const Outputs& all) {
    const Outputs next = body(g, Outputs(all.begin() + 2, all.end()));
    return Join({ops::Add(all[0], ops::Const(g, 1, "one")), all[1]}, next);
  });
  CheckBody({body_draft.results().begin() + 2, body_draft.results().end()}, variables, options.name);

  const Outputs captures = ShareCaptures(cond_draft, body_draft);
  std::vector<Shape> shapes = {Shape(), Shape()};
  for (const FunctionArg& variable : variables) shapes.push_back(variable.shape);
  for (const Output& captured : captures) {
    body_draft.AddResult(body_draft.ArgumentOf(captured));
    shapes.push_back(captured.shape());
  }
  const auto cond_function = cond_draft.Finish(graph.UniqueFunctionName(options.name + "_cond"));
  const auto body_function = body_draft.Finish(graph.UniqueFunctionName(options.name + "_body"));
  const auto maximum = static_cast<int32_t>(std::min<int64_t>(options.maximum_iterations, INT32_MAX));
  const Outputs counters = {ops::Const(graph, 0, options.name + "/loop_counter"),
                            ops::Const(graph, limited ? maximum : -1, options.name + "/maximum_iterations")};
  Node* node = AddWhile(graph, Join(Join(counters, inputs), captures), *cond_function, *body_function, shapes,
                        options.parallel_iterations, {options.name, site});
  return OutputsOf(node, 2, 2 + static_cast<int>(inputs.size()));
}

}  // namespace ops

void RegisterControlFlowOps(OpRegistry& registry) {
  registry.Register(CallOp("PartitionedCall"));
  registry.Register(CallOp("StatefulPartitionedCall").Stateful());
  registry.Register(IfOp("StatelessIf"));
  registry.Register(IfOp("If").Stateful());
  registry.Register(WhileOp("StatelessWhile"));
  registry.Register(WhileOp("While").Stateful());
}

}  // namespace cohort
