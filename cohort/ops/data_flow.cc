#include "cohort/ops/data_flow.h"

#include <utility>

#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

// The same value in another memory or order; `why` it has no gradient.
OpDef Moved(OpDef def, const char* dtypes, const char* why, const char* doc) {
  return std::move(def).Attr(dtypes).ShapeRule(ops::UnchangedShape).NotDifferentiable(why).Doc(doc);
}

}  // namespace

void RegisterDataFlowOps(OpRegistry& registry) {
  registry.Register(OpDef("_Arg")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("index: int >= 0")
                        .Attr("shape: shape = { unknown_rank: true }")
                        .ShapeRule([](ShapeContext& c) { return std::vector<Shape>{c.attr<Shape>("shape")}; })
                        .ReturnsKeptValue()
                        .NotDifferentiable("made when a session cuts the graph at its feeds, after gradients")
                        .Stateful()
                        .Doc("The fed value number `index` of the step, of which `shape` is known."));
  registry.Register(OpDef("_Retval")
                        .Input("input: T")
                        .Attr("T: type")
                        .Attr("index: int >= 0")
                        .ShapeRule(ops::NoOutputs)
                        .KeepsLastInput()
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Hands `input` out as the fetched value number `index` of the step."));
  registry.Register(OpDef("_Send")
                        .Input("tensor: T")
                        .Attr("T: type")
                        .Attr("tensor_name: string")
                        .Attr("edge: int >= 0")
                        .Attr("send_device: string")
                        .Attr("recv_device: string")
                        .ShapeRule(ops::NoOutputs)
                        .KeepsLastInput()
                        .NotDifferentiable("made when a graph is partitioned, after gradients")
                        .Stateful()
                        .Doc("Sends `tensor` to the _Recv of the same `edge`, once a step."));
  registry.Register(
      OpDef("_Recv")
          .Output("tensor: tensor_type")
          .Attr("tensor_type: type")
          .Attr("shape: shape")
          .Attr("tensor_name: string")
          .Attr("edge: int >= 0")
          .Attr("send_device: string")
          .Attr("recv_device: string")
          .ShapeRule([](ShapeContext& c) { return std::vector<Shape>{c.attr<Shape>("shape")}; })
          .NotDifferentiable("made when a graph is partitioned, after gradients")
          .Stateful()
          .Doc("Receives what the _Send of the same `edge` sends; `shape` is what is known of its shape."));
  const char* const placed = "made when a partition's values are given their memory, after gradients";
  const char* const compiled = "made when a plan is compiled, after gradients";
  const char* const images = "T: {float32, bfloat16}";
  registry.Register(Moved(OpDef("_ToHost").Input("input: T").HostOutput("output: T"), "T: type", placed,
                          "A copy of `input`, which lies in the device's memory, in the host's."));
  registry.Register(Moved(OpDef("_ToDevice").HostInput("input: T").Output("output: T"), "T: type", placed,
                          "A copy of `input`, which lies in the host's memory, in the device's."));
  registry.Register(Moved(OpDef("_ToBlocked").Input("input: T").Output("output: T"), images, compiled,
                          "Images [batch, rows, columns, channels] with their elements in the order [batch, channels / "
                          "16, rows, columns, 16]. The shape stays."));
  registry.Register(Moved(OpDef("_FromBlocked").Input("input: T").Output("output: T"), images, compiled,
                          "The reverse of _ToBlocked."));
}

}  // namespace cohort
