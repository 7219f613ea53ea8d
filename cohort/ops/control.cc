#include "cohort/ops/control.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

Node* NoOpAfter(Graph& graph, const std::vector<Node*>& nodes, const NodeName& name) {
  NodeBuilder builder = graph.Op("NoOp");
  builder.Name(name);
  for (Node* node : nodes) builder.Control(node);
  return builder.Finish();
}

std::vector<Shape> ConditionShape(ShapeContext& c) {
  c.WithRank(0, 0);
  return {};
}

}  // namespace

namespace ops {

Node* NoOp(Graph& graph, const NodeName& name) { return graph.Op("NoOp").Name(name).Finish(); }

Node* Group(Graph& graph, const std::vector<Node*>& nodes, const NodeName& name) {
  const CallSiteScope site(graph, name.site());
  std::vector<std::pair<std::string, std::vector<Node*>>> by_device;  // in the order of first use
  for (Node* node : nodes) {
    auto group = by_device.begin();
    while (group != by_device.end() && group->first != node->device()) ++group;
    if (group == by_device.end()) group = by_device.insert(group, {node->device(), {}});
    group->second.push_back(node);
  }
  if (by_device.size() <= 1) {
    if (by_device.empty() || by_device.front().first.empty()) return NoOpAfter(graph, nodes, name);
    const DeviceScope device(graph, by_device.front().first);
    return NoOpAfter(graph, nodes, name);
  }
  std::vector<Node*> groups;
  {
    const NameScope scope(graph, name);
    for (const auto& [device_name, members] : by_device) {
      const DeviceScope device(graph, device_name);
      groups.push_back(NoOpAfter(graph, members, "NoOp"));
    }
  }
  return NoOpAfter(graph, groups, name);
}

Node* Assert(Output condition, const std::vector<Output>& data, int64_t summarize, const NodeName& name) {
  return Op("Assert", {condition}).Name(name).Inputs(data).Attr("summarize", summarize).Finish();
}

Output Print(Output input, const std::vector<Output>& data, const std::string& message, int64_t first_n,
             int64_t summarize, const NodeName& name) {
  return Op("Print", {input})
      .Name(name)
      .Inputs(data)
      .Attr("message", message)
      .Attr("first_n", first_n)
      .Attr("summarize", summarize)
      .Finish1();
}

Node* PrintV2(Output text, const std::string& stream, const std::string& end, const NodeName& name) {
  return Op("PrintV2", {text}).Name(name).Attr("output_stream", stream).Attr("end", end).Finish();
}

}  // namespace ops

void RegisterControlOps(OpRegistry& registry) {
  registry.Register(OpDef("NoOp")
                        .ShapeRule(ops::NoOutputs)
                        .NotDifferentiable("has neither inputs nor outputs")
                        .Doc("Does nothing; used for the order of other nodes."));
  registry.Register(OpDef("Assert")
                        .Input("condition: bool")
                        .Input("data: T")
                        .Attr("T: list(type) >= 1")
                        .Attr("summarize: int = 3")
                        .ShapeRule(ConditionShape)
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Fails the step where `condition` is false, showing the first elements of `data`."));
  registry.Register(OpDef("Print")
                        .Input("input: T")
                        .Input("data: U")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("U: list(type) >= 0")
                        .Attr("message: string = ''")
                        .Attr("first_n: int = -1")
                        .Attr("summarize: int = 3")
                        .ShapeRule(ops::UnchangedShape)
                        .Gradient([](GradientContext& c) { c.SetInput(0, c.raw_grad(0)); })
                        .Stateful()
                        .Doc("Passes `input` on and writes `message` and `data` to stderr."));
  registry.Register(OpDef("PrintV2")
                        .Input("input: string")
                        .Attr("output_stream: string = 'stderr'")
                        .Attr("end: string = '\n'")
                        .ShapeRule(ConditionShape)
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Writes a string scalar to stdout or stderr."));
}

}  // namespace cohort
