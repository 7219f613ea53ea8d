#include "cohort/ops/step_clock.h"

#include "cohort/graph/op_def.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {

void RegisterStepClockOps(OpRegistry& registry) {
  const auto no_outputs = [](ShapeContext&) { return std::vector<Shape>(); };
  registry.Register(OpDef("StepClock")
                        .Output("handle: resource")
                        .Attr("container: string = ''")
                        .Attr("shared_name: string = ''")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("a handle is not a number")
                        .Stateful()
                        .Doc("Handle of a clock that counts the steps of sessions."));
  registry.Register(OpDef("StepClockJoin")
                        .Input("handle: resource")
                        .ShapeRule(no_outputs)
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Makes the clock count this step's session until the session ends."));
  registry.Register(
      OpDef("StepClockTick")
          .Input("handle: resource")
          .HostInput("staleness: int64")
          .Attr("limit: int")
          .ShapeRule(no_outputs)
          .NotDifferentiable("has no output")
          .Stateful()
          .Doc("Counts a step of the session, and waits while the session is too far ahead of the slowest."));
  registry.Register(OpDef("StepClockTakeStaleness")
                        .Input("handle: resource")
                        .HostOutput("staleness: int64")
                        .ShapeRule([](ShapeContext&) { return std::vector<Shape>{Shape{Shape::kUnknownDim}}; })
                        .NotDifferentiable("numbers of steps")
                        .Stateful()
                        .Doc("The staleness of all ticks since the last call."));
  registry.Register(OpDef("ChiefRecord")
                        .Output("handle: resource")
                        .Attr("container: string = ''")
                        .Attr("shared_name: string = ''")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("a handle is not a number")
                        .Stateful()
                        .Doc("Handle of a record that says which session leads a training."));
  registry.Register(OpDef("ChiefRecordHold")
                        .Input("handle: resource")
                        .HostInput("holder: string")
                        .HostInput("description: string")
                        .ShapeRule(no_outputs)
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Waits until no other session holds the record; this step's session then holds it."));
  registry.Register(OpDef("ChiefRecordRead")
                        .Input("handle: resource")
                        .HostOutput("holder: string")
                        .HostOutput("description: string")
                        .ShapeRule([](ShapeContext&) {
                          return std::vector<Shape>{Shape(), Shape()};
                        })
                        .NotDifferentiable("texts")
                        .Stateful()
                        .Doc("What the latest holder has written; its name is empty if its session has ended."));
}

namespace ops {

Output StepClock(Graph& graph, const std::string& shared_name, const NodeName& name) {
  return graph.Op("StepClock").Name(name).Attr("shared_name", shared_name).Finish1();
}

Node* StepClockJoin(Output clock, const NodeName& name) {
  const ColocateWith beside(clock.graph(), *clock.node);
  return Op("StepClockJoin", {clock}, name).Finish();
}

Node* StepClockTick(Output clock, const Operand& staleness, int64_t limit, const NodeName& name) {
  const ColocateWith beside(clock.graph(), *clock.node);
  return Op("StepClockTick", {clock, staleness}, name).Attr("limit", limit).Finish();
}

Output StepClockTakeStaleness(Output clock, const NodeName& name) {
  const ColocateWith beside(clock.graph(), *clock.node);
  return Op("StepClockTakeStaleness", {clock}, name).Finish1();
}

Output ChiefRecord(Graph& graph, const std::string& shared_name, const NodeName& name) {
  return graph.Op("ChiefRecord").Name(name).Attr("shared_name", shared_name).Finish1();
}

Node* ChiefRecordHold(Output record, const Operand& holder, const Operand& description, const NodeName& name) {
  const ColocateWith beside(record.graph(), *record.node);
  return Op("ChiefRecordHold", {record, holder, description}, name).Finish();
}

ChiefRecordText ChiefRecordRead(Output record, const NodeName& name) {
  const ColocateWith beside(record.graph(), *record.node);
  const Node* node = Op("ChiefRecordRead", {record}, name).Finish();
  return {node->output(0), node->output(1)};
}

}  // namespace ops
}  // namespace cohort
