#include "cohort/ops/accumulators.h"

#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/array.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

constexpr char kDTypes[] = "dtype: {float32, float64, bfloat16}";
// The shapes of the outputs of a take, as far as they are known. TensorFlow's tools use an attribute of this name, too.
constexpr char kOutputShapesOfTake[] = "_output_shapes";

std::vector<Shape> NameShape(ShapeContext&) { return {Shape{2}}; }

// Returns what the node says of its outputs.
std::vector<Shape> TakeShapes(ShapeContext& c, std::vector<Shape> otherwise) {
  c.WithRank(1, 0);
  if (!c.has_attr(kOutputShapesOfTake)) return otherwise;
  const auto& known = c.attr<std::vector<Shape>>(kOutputShapesOfTake);
  return known.size() == otherwise.size() ? known : otherwise;
}

std::vector<Shape> MeanShape(ShapeContext& c) { return TakeShapes(c, {Shape::UnknownRank()}); }

std::vector<Shape> SparseMeanShape(ShapeContext& c) {
  return TakeShapes(c, {Shape{Shape::kUnknownDim}, Shape::UnknownRank(), Shape{Shape::kUnknownDim}});
}

std::vector<Shape> ApplyShape(ShapeContext& c) {
  c.WithRank(1, 0);
  return {};
}

std::vector<Shape> SparseApplyShape(ShapeContext& c) {
  c.WithRank(1, 0);
  c.WithRank(2, 1);
  c.WithRankAtLeast(3, 1);
  c.WithRank(4, 1);
  return {};
}

std::string HandleInput(bool resource) { return resource ? "handle: resource" : "handle: string"; }

void RegisterHandle(OpRegistry& registry, const char* name, bool resource, const char* doc) {
  OpDef def(name);
  // The strings of the older handle lie in host memory, as all strings do.
  std::move(def).Output(HandleInput(resource));
  registry.Register(std::move(def)
                        .Attr(kDTypes)
                        .Attr("shape: shape")
                        .Attr("container: string = ''")
                        .Attr("shared_name: string = ''")
                        .Attr("reduction_type: {'MEAN','SUM'} = 'MEAN'")
                        .ShapeRule(resource ? ops::ScalarShape : NameShape)
                        .NotDifferentiable("a handle is not a number")
                        .Stateful()
                        .Doc(doc));
}

// The ops that exist for both kinds of handles.
void RegisterShared(OpRegistry& registry, bool resource) {
  const std::string prefix = resource ? "Resource" : "";
  registry.Register(OpDef(prefix + "AccumulatorApplyGradient")
                        .Input(HandleInput(resource))
                        .HostInput("local_step: int64")
                        .Input("gradient: dtype")
                        .Attr(kDTypes)
                        .ShapeRule(ApplyShape)
                        .KeepsLastInput()
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .AddsToResource()
                        .Doc("Adds a gradient to the accumulator, or drops it if it is stale."));
  registry.Register(OpDef(prefix + "AccumulatorTakeGradient")
                        .Input(HandleInput(resource))
                        .HostInput("num_required: int32")
                        .Output("average: dtype")
                        .Attr(kDTypes)
                        .ShapeRule(MeanShape)
                        .ReturnsKeptValue()
                        .NotDifferentiable("the value comes from other steps")
                        .Stateful()
                        .Doc("The mean of the gradients, as soon as there are num_required; the accumulator is then "
                             "empty, and its global step 1 higher."));
  registry.Register(OpDef(prefix + "AccumulatorNumAccumulated")
                        .Input(HandleInput(resource))
                        .HostOutput("num_accumulated: int32")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("a number of gradients")
                        .Stateful()
                        .Doc("The number of gradients in the accumulator."));
  registry.Register(OpDef(prefix + "AccumulatorSetGlobalStep")
                        .Input(HandleInput(resource))
                        .HostInput("new_global_step: int64")
                        .ShapeRule(ApplyShape)
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Sets the accumulator's global step: gradients of earlier steps are stale."));
}

void RegisterSparse(OpRegistry& registry) {
  registry.Register(OpDef("SparseAccumulatorApplyGradient")
                        .Input("handle: string")
                        .HostInput("local_step: int64")
                        .Input("gradient_indices: int64")
                        .Input("gradient_values: dtype")
                        .HostInput("gradient_shape: int64")
                        .Attr(kDTypes)
                        .Attr("has_known_shape: bool")
                        .ShapeRule(SparseApplyShape)
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .AddsToResource()
                        .Doc("Adds a sparse gradient to the accumulator, or drops it if it is stale."));
  registry.Register(OpDef("SparseAccumulatorTakeGradient")
                        .Input("handle: string")
                        .HostInput("num_required: int32")
                        .Output("indices: int64")
                        .Output("values: dtype")
                        .HostOutput("shape: int64")
                        .Attr(kDTypes)
                        .ShapeRule(SparseMeanShape)
                        .NotDifferentiable("the value comes from other steps")
                        .Stateful()
                        .Doc("The rows of the gradients, each divided by the number of gradients that held it, as soon "
                             "as there are num_required gradients."));
}

}  // namespace

void RegisterAccumulatorOps(OpRegistry& registry) {
  RegisterHandle(registry, "ConditionalAccumulator", false, "The name of an accumulator of dense gradients.");
  RegisterHandle(registry, "ResourceConditionalAccumulator", true, "Handle of an accumulator of dense gradients.");
  RegisterHandle(registry, "SparseConditionalAccumulator", false, "The name of an accumulator of sparse gradients.");
  RegisterShared(registry, false);
  RegisterShared(registry, true);
  RegisterSparse(registry);
  registry.Register(OpDef("AccumulatorNumStale")
                        .Input("handle: Thandle")
                        .HostOutput("num_stale: int64")
                        .Attr("Thandle: {resource, string}")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("a number of gradients")
                        .Stateful()
                        .Doc("How many gradients were dropped because they were stale."));
}

namespace ops {
namespace {

Output AccumulatorNode(Graph& graph, const char* op, const char* name, DType dtype, const Shape& shape,
                       const AccumulatorOptions& options) {
  return graph.Op(op, options.name.site())
      .Name(options.name.empty() ? NodeName(name, options.name.site()) : options.name)
      .Attr("dtype", dtype)
      .Attr("shape", shape)
      .Attr("shared_name", options.shared_name)
      .Attr("container", options.container)
      .Attr("reduction_type", options.reduction_type)
      .Finish1();
}

}  // namespace

Accumulator::Accumulator(Output handle, DType dtype, Shape shape)
    : handle_(handle), dtype_(dtype), shape_(std::move(shape)) {}

NodeBuilder Accumulator::Add(const std::string& op, const char* suffix, const NodeName& name) const {
  NodeBuilder builder = handle_.graph().Op(op, name.site());
  builder.Name(name.empty() ? NodeName(handle_.node->name() + suffix, name.site()) : name).Input(handle_);
  return builder;
}

Output Accumulator::NumAccumulated(const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return Add(StrCat(prefix(), "AccumulatorNumAccumulated"), "_NumAccumulated", name).Finish1();
}

Output Accumulator::NumStale(const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return Add("AccumulatorNumStale", "_NumStale", name).Finish1();
}

Node* Accumulator::SetGlobalStep(const Operand& new_global_step, const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  const Output step = new_global_step.In(handle_.graph(), DType::kInt64, "the global step of an accumulator");
  return Add(StrCat(prefix(), "AccumulatorSetGlobalStep"), "_SetGlobalStep", name)
      .Input(step.dtype() == DType::kInt64 ? step : Cast(step, DType::kInt64))
      .Finish();
}

ConditionalAccumulator::ConditionalAccumulator(Graph& graph, DType dtype, const Shape& shape,
                                               const AccumulatorOptions& options)
    : Accumulator(
          AccumulatorNode(graph, "ResourceConditionalAccumulator", "conditional_accumulator", dtype, shape, options),
          dtype, shape) {}

Node* ConditionalAccumulator::ApplyGrad(Output gradient, const Operand& local_step, const NodeName& name) const {
  const ColocateWith beside(handle().graph(), *handle().node);
  return Add("ResourceAccumulatorApplyGradient", "_ApplyGrad", name)
      .Input(local_step.In(handle().graph(), DType::kInt64, "the local step of a gradient"))
      .Input(gradient)
      .Finish();
}

Output ConditionalAccumulator::TakeGrad(const Operand& num_required, const NodeName& name) const {
  const ColocateWith beside(handle().graph(), *handle().node);
  NodeBuilder builder = Add("ResourceAccumulatorTakeGradient", "_TakeGrad", name);
  builder.Input(num_required.In(handle().graph(), DType::kInt32, "the number of gradients")).Attr("dtype", dtype());
  if (shape().has_rank()) builder.Attr(kOutputShapesOfTake, std::vector<Shape>{shape()});
  return builder.Finish1();
}

SparseConditionalAccumulator::SparseConditionalAccumulator(Graph& graph, DType dtype, const Shape& shape,
                                                           const AccumulatorOptions& options)
    : Accumulator(AccumulatorNode(graph, "SparseConditionalAccumulator", "sparse_conditional_accumulator", dtype, shape,
                                  options),
                  dtype, shape) {}

Node* SparseConditionalAccumulator::ApplyIndexedSlicesGrad(const Gradient& gradient, const Operand& local_step,
                                                           const NodeName& name) const {
  if (!gradient.is_sparse()) {
    throw InvalidArgumentError(StrCat("[ops/accumulators] expected a sparse gradient for '", handle().node->name(),
                                      "'; got a dense one: use ConditionalAccumulator"));
  }
  const Output indices =
      gradient.indices.dtype() == DType::kInt64 ? gradient.indices : Cast(gradient.indices, DType::kInt64);
  const Output shape =
      gradient.dense_shape.dtype() == DType::kInt64 ? gradient.dense_shape : Cast(gradient.dense_shape, DType::kInt64);
  const ColocateWith beside(handle().graph(), *handle().node);
  return Add("SparseAccumulatorApplyGradient", "_ApplyGrad", name)
      .Input(local_step.In(handle().graph(), DType::kInt64, "the local step of a gradient"))
      .Input(indices)
      .Input(gradient.values)
      .Input(shape)
      .Attr("has_known_shape", true)
      .Finish();
}

Gradient SparseConditionalAccumulator::TakeIndexedSlicesGrad(const Operand& num_required, const NodeName& name) const {
  const ColocateWith beside(handle().graph(), *handle().node);
  NodeBuilder builder = Add("SparseAccumulatorTakeGradient", "_TakeGrad", name);
  builder.Input(num_required.In(handle().graph(), DType::kInt32, "the number of gradients")).Attr("dtype", dtype());
  if (shape().rank() > 0) {
    const Shape rows{Shape::kUnknownDim};
    const Shape values = rows.Concat(shape().Sub(1, shape().rank()));
    builder.Attr(kOutputShapesOfTake, std::vector<Shape>{rows, values, Shape{shape().rank()}});
  }
  const Node* node = builder.Finish();
  return Gradient(node->output(1), node->output(0), node->output(2));
}

}  // namespace ops
}  // namespace cohort
