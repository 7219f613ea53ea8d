#include "cohort/graph/testing/test_ops.h"

#include "cohort/graph/constant_value.h"
#include "cohort/graph/device_name.h"
#include "cohort/graph/gradients.h"

namespace cohort {
namespace {

std::vector<Shape> SameAsFirst(ShapeContext& c) { return {c.input(0)}; }
std::vector<Shape> Unknown(ShapeContext&) { return {Shape::UnknownRank()}; }
std::vector<Shape> ScalarShape(ShapeContext&) { return {Shape()}; }
std::vector<Shape> FromShapeAttr(ShapeContext& c) { return {c.attr<Shape>("shape")}; }
void PassOn(GradientContext& c) { c.SetInput(0, c.raw_grad()); }

void RegisterSources(OpRegistry& r) {
  r.Register(OpDef("Const")
                 .Attr("dtype: type")
                 .Attr("value: tensor")
                 .Output("output: dtype")
                 .ShapeRule([](ShapeContext& c) -> std::vector<Shape> { return {c.attr<Tensor>("value").shape()}; }));
  r.Register(OpDef("TestInput")
                 .Attr("dtype: type = DT_FLOAT")
                 .Attr("shape: shape = []")
                 .Output("output: dtype")
                 .ShapeRule(FromShapeAttr));
  r.Register(
      OpDef("Placeholder").Attr("dtype: type").Attr("shape: shape").Output("output: dtype").ShapeRule(FromShapeAttr));
  r.Register(OpDef("VarHandleOp")
                 .Attr("dtype: type")
                 .Attr("shape: shape")
                 .Output("resource: resource")
                 .Stateful()
                 .ShapeRule(ScalarShape));
}

void RegisterShapeOps(OpRegistry& r) {
  r.Register(
      OpDef("Identity").Input("input: T").Output("output: T").Attr("T: type").ShapeRule(SameAsFirst).Gradient(PassOn));
  r.Register(OpDef("Cast")
                 .Input("x: SrcT")
                 .Output("y: DstT")
                 .Attr("SrcT: type")
                 .Attr("DstT: type")
                 .ShapeRule(SameAsFirst)
                 .NotDifferentiable("not needed here"));
  for (const char* name : {"Size", "Rank"}) {
    r.Register(OpDef(name)
                   .Input("input: T")
                   .Output("output: out_type")
                   .Attr("T: type")
                   .Attr("out_type: {int32, int64} = DT_INT32")
                   .ShapeRule(ScalarShape));
  }
  r.Register(OpDef("Shape")
                 .Input("input: T")
                 .Output("output: out_type")
                 .Attr("T: type")
                 .Attr("out_type: {int32, int64} = DT_INT32")
                 .ShapeRule([](ShapeContext& c) -> std::vector<Shape> {
                   return {c.input(0).has_rank() ? Shape{c.input(0).rank()} : Shape::UnknownDims(1)};
                 }));
}

void RegisterJoinAndSliceOps(OpRegistry& r) {
  r.Register(
      OpDef("Pack")
          .Input("values: N * T")
          .Output("output: T")
          .Attr("N: int >= 1")
          .Attr("T: type")
          .Attr("axis: int = 0")
          .ShapeRule([](ShapeContext& c) -> std::vector<Shape> { return {Shape{c.num_inputs()}.Concat(c.input(0))}; }));
  r.Register(OpDef("ConcatV2")
                 .Input("values: N * T")
                 .HostInput("axis: Tidx")
                 .Output("output: T")
                 .Attr("N: int >= 2")
                 .Attr("T: type")
                 .Attr("Tidx: {int32, int64} = DT_INT32")
                 .ShapeRule([](ShapeContext& c) -> std::vector<Shape> {
                   return {c.input(0).has_rank() ? Shape{-1}.Concat(c.input(0).Sub(1, c.input(0).rank()))
                                                 : Shape::UnknownRank()};
                 }));
  r.Register(OpDef("StridedSlice")
                 .Input("input: T")
                 .HostInput("begin: Index")
                 .HostInput("end: Index")
                 .HostInput("strides: Index")
                 .Output("output: T")
                 .Attr("T: type")
                 .Attr("Index: {int32, int64}")
                 .Attr("begin_mask: int = 0")
                 .Attr("end_mask: int = 0")
                 .Attr("ellipsis_mask: int = 0")
                 .Attr("new_axis_mask: int = 0")
                 .Attr("shrink_axis_mask: int = 0")
                 .ShapeRule([](ShapeContext& c) -> std::vector<Shape> {
                   return {c.attr<int64_t>("shrink_axis_mask") == 1 ? Shape() : Shape::UnknownDims(1)};
                 }));
  r.Register(OpDef("TestReshape")
                 .Input("x: T")
                 .HostInput("shape: Tshape")
                 .Output("y: T")
                 .Attr("T: type")
                 .Attr("Tshape: {int32, int64} = DT_INT32")
                 .ShapeRule([](ShapeContext& c) -> std::vector<Shape> { return {c.input_as_shape(1)}; }));
}

void RegisterMathOps(OpRegistry& r) {
  for (const char* name : {"OnesLike", "ZerosLike"}) {
    r.Register(OpDef(name)
                   .Input("x: T")
                   .Output("y: T")
                   .Attr("T: {float, double, int32}")
                   .ShapeRule(SameAsFirst)
                   .NotDifferentiable("constant"));
  }
  for (const char* name : {"AddV2", "Sub", "Mul"}) {
    r.Register(OpDef(name)
                   .Input("x: T")
                   .Input("y: T")
                   .Output("z: T")
                   .Attr("T: {float, double, int32, int64}")
                   .ShapeRule(SameAsFirst));
  }
  r.Register(OpDef("AddN")
                 .Input("inputs: N * T")
                 .Output("sum: T")
                 .Attr("N: int >= 1")
                 .Attr("T: {float, double}")
                 .ShapeRule(SameAsFirst)
                 .Gradient([](GradientContext& c) {
                   for (int i = 0; i < c.node().num_inputs(); ++i) c.SetInput(i, c.grad());
                 }));
  r.Register(OpDef("UnsortedSegmentSum")
                 .Input("data: T")
                 .Input("segment_ids: Tindices")
                 .HostInput("num_segments: Tnumsegments")
                 .Output("output: T")
                 .Attr("T: {float, double}")
                 .Attr("Tindices: {int32, int64}")
                 .Attr("Tnumsegments: {int32, int64} = DT_INT32")
                 .ShapeRule(Unknown));
}

void RegisterOpsOfTestsAlone(OpRegistry& r) {
  r.Register(
      OpDef("TestMul")
          .Input("a: T")
          .Input("b: T")
          .Output("product: T")
          .Attr("T: {half, float, double, int32}")
          .Attr("mode: {'fast', 'exact'} = 'fast'")
          .ShapeRule([](ShapeContext& c) -> std::vector<Shape> { return {BroadcastShapes(c.input(0), c.input(1))}; })
          .Gradient([](GradientContext& c) {
            c.SetInput(0, TestMul(c.grad(), c.input(1)));
            c.SetInput(1, TestMul(c.grad(), c.input(0)));
          }));
  r.Register(OpDef("TestMatMul")
                 .Input("a: T")
                 .Input("b: T")
                 .Output("product: T")
                 .Attr("T: {float, double}")
                 .ShapeRule([](ShapeContext& c) -> std::vector<Shape> {
                   return {{c.WithRank(0, 2).dim(0), c.WithRank(1, 2).dim(1)}};
                 }));
  r.Register(OpDef("TestFloor")
                 .Input("x: T")
                 .Output("y: T")
                 .Attr("T: {float}")
                 .ShapeRule(SameAsFirst)
                 .NotDifferentiable("constant almost everywhere"));
  r.Register(OpDef("TestSplit")
                 .Input("x: T")
                 .Output("first: T")
                 .Output("second: T")
                 .Attr("T: {float}")
                 .ShapeRule([](ShapeContext& c) -> std::vector<Shape> {
                   return {c.input(0), c.input(0)};
                 })
                 .Gradient([](GradientContext& c) { c.SetInput(0, TestMul(c.grad(0), c.grad(1))); }));
  r.Register(OpDef("TestBadGradient")
                 .Input("x: float")
                 .Output("y: float")
                 .ShapeRule(SameAsFirst)
                 .Gradient([](GradientContext& c) { c.SetInput(0, TestInput(c.graph(), DType::kFloat32, Shape{7})); }));
  r.Register(OpDef("TestMany")
                 .Input("data: Tin")
                 .Output("out: Tin")
                 .Attr("Tin: list(type) >= 0")
                 .Attr("axes: list(int) = [1, 2]")
                 .Attr("names: list(string) = []")
                 .Attr("rate: float = 0.5"));
}

void RegisterVariableOps(OpRegistry& r) {
  r.Register(OpDef("ReadVariableOp")
                 .Input("resource: resource")
                 .Output("value: dtype")
                 .Attr("dtype: type")
                 .Stateful()
                 .ShapeRule([](ShapeContext& c) -> std::vector<Shape> { return {c.handle_shape(0)}; })
                 .Gradient(PassOn));
  r.Register(OpDef("ResourceGather")
                 .Input("resource: resource")
                 .Input("indices: Tindices")
                 .Output("output: dtype")
                 .Attr("dtype: type")
                 .Attr("Tindices: {int32, int64}")
                 .Stateful()
                 .ShapeRule([](ShapeContext& c) -> std::vector<Shape> {
                   const Shape v = c.handle_shape(0);
                   return {c.input(1).Concat(v.Sub(1, v.rank()))};
                 })
                 .Gradient([](GradientContext& c) {
                   const Shape shape = HandleShape(c.input(0));
                   const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
                   c.SetInput(0, {c.grad(), c.input(1), TestConst(c.graph(), Tensor::Vector(dims))});
                 }));
}

[[maybe_unused]] const bool registered = [] {
  OpRegistry& registry = OpRegistry::Global();
  RegisterSources(registry);
  RegisterShapeOps(registry);
  RegisterJoinAndSliceOps(registry);
  RegisterMathOps(registry);
  RegisterOpsOfTestsAlone(registry);
  RegisterVariableOps(registry);
  AddShortDeviceType("GPU");
  AddShortDeviceType("TEST");
  return true;
}();

}  // namespace

Output TestConst(Graph& graph, const Tensor& value, const std::string& name) {
  return graph.Op("Const").Attr("dtype", value.dtype()).Attr("value", value).Name(name).Finish1();
}

Output TestInput(Graph& graph, DType dtype, const Shape& shape, const std::string& name) {
  return graph.Op("TestInput").Attr("dtype", dtype).Attr("shape", shape).Name(name).Finish1();
}

Output TestMul(Output a, Output b, const std::string& name) {
  return a.graph().Op("TestMul").Input(a).Input(b).Name(name).Finish1();
}

Output TestVariable(Graph& graph, const Shape& shape, const std::string& name) {
  return graph.Op("VarHandleOp").Attr("dtype", DType::kFloat32).Attr("shape", shape).Name(name).Finish1();
}

Output TestRead(Output handle) {
  ColocateWith colocate(handle.graph(), *handle.node);
  return handle.graph().Op("ReadVariableOp").Input(handle).Attr("dtype", DType::kFloat32).Finish1();
}

}  // namespace cohort
