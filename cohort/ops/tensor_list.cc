#include "cohort/ops/tensor_list.h"

#include "cohort/graph/constant_value.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

// As a value: a vector; the scalar -1 for an unknown rank.
Output ElementShape(Graph& graph, const Shape& shape) {
  if (!shape.has_rank()) return ops::Const(graph, -1, "element_shape");
  std::vector<int32_t> dims;
  for (const int64_t dim : shape.dims()) dims.push_back(static_cast<int32_t>(dim));
  return ops::Const(graph, dims, "element_shape");
}

// The shape that input `i` describes; a scalar says nothing.
Shape ShapeOfElements(const ShapeContext& c, int i) {
  return c.input(i).rank() == 1 ? c.input_as_shape(i) : Shape::UnknownRank();
}

std::vector<Shape> ItemShape(ShapeContext& c) {
  c.WithRank(1, 0);
  return {ShapeOfElements(c, 2)};
}

std::vector<Shape> StackShape(ShapeContext& c) {
  const Shape element = ShapeOfElements(c, 1);
  const int64_t count = c.attr<int64_t>("num_elements");
  if (!element.has_rank() || element.rank() == Shape::kMaxRank) return {Shape::UnknownRank()};
  std::vector<int64_t> dims = {count < 0 ? -1 : count};
  dims.insert(dims.end(), element.dims().begin(), element.dims().end());
  return {Shape(dims)};
}

// Lists of this kind come from graphs that TensorFlow made, and Cohort does not train these.
constexpr char kOnlyLoaded[] = "only loaded graphs have the op; loops of Cohort keep values with TensorListPushBack";

std::vector<Shape> PopShapes(ShapeContext& c) {
  return {Shape(), c.input(1).rank() == 1 ? c.input_as_shape(1) : Shape::UnknownRank()};
}

// The gradient of a list is the list of the gradients.
void PushGradient(GradientContext& c) {
  const ops::PoppedTensor popped = ops::TensorListPopBack(c.grad(0), c.input(1).dtype(), c.input(1).shape());
  c.SetInput(0, popped.list);
  c.SetInput(1, popped.tensor);
}
void PopGradient(GradientContext& c) { c.SetInput(0, ops::TensorListPushBack(c.grad(0), c.grad(1))); }

}  // namespace

namespace ops {

Output EmptyTensorList(Graph& graph, DType dtype, const Shape& shape, const NodeName& name) {
  return graph.Op("EmptyTensorList")
      .Name(name)
      .Input(ElementShape(graph, shape))
      .Input(Const(graph, -1, "max_num_elements"))
      .Attr("element_dtype", dtype)
      .Finish1();
}

Output TensorListPushBack(Output list, Output tensor, const NodeName& name) {
  return Op("TensorListPushBack", {list, tensor}, name).Finish1();
}

PoppedTensor TensorListPopBack(Output list, DType dtype, const Shape& shape, const NodeName& name) {
  Node* node = Op("TensorListPopBack", {list}, name)
                   .Input(ElementShape(list.graph(), shape))
                   .Attr("element_dtype", dtype)
                   .Finish();
  return {node->output(0), node->output(1)};
}

}  // namespace ops

namespace {

// The ops of lists whose elements are set by number.
void RegisterIndexedListOps(OpRegistry& registry) {
  registry.Register(OpDef("TensorListReserve")
                        .HostInput("element_shape: shape_type")
                        .HostInput("num_elements: int32")
                        .Output("handle: variant")
                        .Attr("element_dtype: type")
                        .Attr("shape_type: {int32, int64}")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("a list without values depends on nothing")
                        .Doc("A list of `num_elements` tensors, which are not set yet."));
  registry.Register(OpDef("TensorListFromTensor")
                        .Input("tensor: element_dtype")
                        .HostInput("element_shape: shape_type")
                        .Output("output_handle: variant")
                        .Attr("element_dtype: type")
                        .Attr("shape_type: {int32, int64}")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable(kOnlyLoaded)
                        .Doc("A list of the rows of `tensor`."));
  registry.Register(OpDef("TensorListGetItem")
                        .Input("input_handle: variant")
                        .HostInput("index: int32")
                        .HostInput("element_shape: int32")
                        .Output("item: element_dtype")
                        .Attr("element_dtype: type")
                        .ShapeRule(ItemShape)
                        .NotDifferentiable(kOnlyLoaded)
                        .Doc("Element `index` of the list; zeros where it was never set."));
  registry.Register(OpDef("TensorListSetItem")
                        .Input("input_handle: variant")
                        .HostInput("index: int32")
                        .Input("item: element_dtype")
                        .Output("output_handle: variant")
                        .Attr("element_dtype: type")
                        .Attr("resize_if_index_out_of_bounds: bool = false")
                        .ShapeRule(ops::ScalarShape)
                        .KeepsLastInput()
                        .NotDifferentiable(kOnlyLoaded)
                        .Doc("The list with `item` as element `index`."));
  registry.Register(OpDef("TensorListStack")
                        .Input("input_handle: variant")
                        .HostInput("element_shape: int32")
                        .Output("tensor: element_dtype")
                        .Attr("element_dtype: type")
                        .Attr("num_elements: int = -1")
                        .ShapeRule(StackShape)
                        .NotDifferentiable(kOnlyLoaded)
                        .Doc("All elements of the list as the rows of one tensor; zeros for those never set."));
  registry.Register(OpDef("TensorListLength")
                        .Input("input_handle: variant")
                        .HostOutput("length: int32")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("the result is a number of elements")
                        .Doc("How many elements the list has."));
}

}  // namespace

void RegisterTensorListOps(OpRegistry& registry) {
  RegisterIndexedListOps(registry);
  registry.Register(OpDef("EmptyTensorList")
                        .HostInput("element_shape: shape_type")
                        .HostInput("max_num_elements: int32")
                        .Output("handle: variant")
                        .Attr("element_dtype: type")
                        .Attr("shape_type: {int32, int64}")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("an empty list depends on nothing")
                        .Doc("An empty list; its tensors will be of `element_dtype` and `element_shape` (-1: any)."));
  registry.Register(OpDef("TensorListPushBack")
                        .Input("input_handle: variant")
                        .Input("tensor: element_dtype")
                        .Output("output_handle: variant")
                        .Attr("element_dtype: type")
                        .ShapeRule(ops::ScalarShape)
                        .KeepsLastInput()
                        .Gradient(PushGradient)
                        .Doc("The list with `tensor` at its end."));
  registry.Register(OpDef("TensorListPopBack")
                        .Input("input_handle: variant")
                        .HostInput("element_shape: int32")
                        .Output("output_handle: variant")
                        .Output("tensor: element_dtype")
                        .Attr("element_dtype: type")
                        .ShapeRule(PopShapes)
                        .Gradient(PopGradient)
                        .Doc("The list without its last tensor, and that; an error where it is empty."));
}

}  // namespace cohort
