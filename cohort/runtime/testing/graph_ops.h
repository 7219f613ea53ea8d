// Ops for tests of graph passes: TestOp (any number of float32 inputs, one output), TestHandle, TestRead, TestUpdate
// and TestOnlyOp. RegisterGraphTestOps registers them, and also the real ops: those of cohort/ops/.
#pragma once

#include <string>
#include <vector>

#include "cohort/device/kernel.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/register.h"

namespace cohort {

inline std::vector<Shape> TestShape(ShapeContext&) { return {Shape{2}}; }
inline std::vector<Shape> TestNoShape(ShapeContext&) { return {}; }

// Registers the test ops and the real ops. Also registers kernels that do nothing, for ops that have no kernel yet:
// - For the device type TEST: TestOp and TestOnlyOp.
// - For CPU: TestOp, TestHandle, TestRead and TestUpdate, and the real ops NoOp, Const, Shape and Identity.
inline void RegisterGraphTestOps() {
  if (OpRegistry::Global().Find("TestOp") != nullptr) return;
  RegisterOps();
  OpRegistry& ops = OpRegistry::Global();
  ops.Register(
      OpDef("TestOp").Input("in: N * float32").Output("out: float32").Attr("N: int >= 0").ShapeRule(TestShape));
  ops.Register(OpDef("TestOnlyOp").Output("out: float32").ShapeRule(TestShape));
  ops.Register(OpDef("TestHandle").Output("handle: resource").ShapeRule([](ShapeContext&) {
    return std::vector<Shape>{Shape()};
  }));
  ops.Register(OpDef("TestRead").Input("handle: resource").Output("value: float32").ShapeRule(TestShape));
  ops.Register(OpDef("TestUpdate")
                   .Input("handle: resource")
                   .Input("value: float32")
                   .ShapeRule(TestNoShape)
                   .Stateful()
                   .UpdatesVariable());
  KernelRegistry& kernels = KernelRegistry::Global();
  const auto kernel = [&](const char* op, const char* type) {  // kernels of the real ops may be registered already
    if (!kernels.Has(op, type)) kernels.RegisterFn(op, type, [](KernelContext&) {});
  };
  for (const char* op : {"NoOp", "Const", "Shape", "Identity", "TestOp", "TestHandle", "TestRead", "TestUpdate"}) {
    kernel(op, "CPU");
  }
  kernel("TestOp", "TEST");
  kernel("TestOnlyOp", "TEST");
}

inline Node* TestNode(Graph& graph, const std::string& name, const std::vector<Output>& inputs,
                      const std::string& device = "") {
  return graph.Op("TestOp").Name(name).Inputs(inputs).Device(device).Finish();
}
inline Node* TestHandle(Graph& graph, const std::string& name, const std::string& device = "") {
  return graph.Op("TestHandle").Name(name).Device(device).Finish();
}
inline Node* TestUpdate(Graph& graph, const std::string& name, Node* handle, Output value,
                        const std::string& device = "") {
  return graph.Op("TestUpdate").Name(name).Input(handle->output(0)).Input(value).Device(device).Finish();
}
inline Node* TestConst(Graph& graph, const std::string& name, const std::string& device = "") {
  return graph.Op("Const")
      .Name(name)
      .Attr("dtype", DType::kFloat32)
      .Attr("value", Tensor::Vector<float>({1, 2}))
      .Device(device)
      .Finish();
}

}  // namespace cohort
