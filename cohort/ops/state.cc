#include "cohort/ops/state.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

const Node& HandleNode(Output handle) {
  if (!handle.valid() || handle.dtype() != DType::kResource) {
    throw InvalidArgumentError(StrCat("[ops/state] expected the handle of a variable; got ",
                                      handle.valid() ? handle.node->Describe() : "no value"));
  }
  return *handle.node;
}

// A node on the variable's device.
NodeBuilder OnVariable(Output handle, const char* op, const NodeName& name) {
  return std::move(ops::Op(op, {handle}).Name(name));
}

void CheckDType(ShapeContext& c, int handle, DType dtype) {
  const DType have = c.handle_dtype(handle);
  if (have != DType::kInvalid && have != dtype) {
    throw InvalidArgumentError(StrCat("[ops/state] expected the variable's dtype ", have, "; got ", dtype));
  }
}

std::vector<Shape> AssignShape(ShapeContext& c) {
  CheckDType(c, 0, c.input_dtype(1));
  if (!c.handle_shape(0).IsCompatibleWith(c.input(1))) {
    throw InvalidArgumentError(
        StrCat("[ops/state] expected a value of the variable's shape ", c.handle_shape(0), "; got ", c.input(1)));
  }
  return {};
}

Shape RowsShape(ShapeContext& c) {
  const Shape variable = c.handle_shape(0);
  if (!variable.has_rank()) return Shape::UnknownRank();
  if (variable.rank() < 1) throw InvalidArgumentError("[ops/state] Shape must be at least rank 1 but is rank 0");
  return c.input(1).Concat(variable.Sub(1, variable.rank()));
}

std::vector<Shape> GatherShape(ShapeContext& c) {
  if (c.attr<int64_t>("batch_dims") != 0) {
    throw InvalidArgumentError(StrCat("[ops/state] expected batch_dims 0; got ", c.attr<int64_t>("batch_dims")));
  }
  CheckDType(c, 0, c.attr<DType>("dtype"));
  return {RowsShape(c)};
}

std::vector<Shape> ScatterShape(ShapeContext& c) {
  CheckDType(c, 0, c.attr<DType>("dtype"));
  const Shape rows = RowsShape(c);
  if (!c.input(2).IsScalar() && !rows.IsCompatibleWith(c.input(2))) {
    throw InvalidArgumentError(StrCat(
        "[ops/state] expected updates of shape indices.shape + variable.shape[1:] = ", rows, "; got ", c.input(2)));
  }
  return {};
}

// Rows of the gradient, and which rows they are; repeated indices are summed where the gradient is applied.
void GatherGradient(GradientContext& c) {
  const Output handle = c.input(0);
  const Shape variable = ops::VariableShapeOf(handle);
  Output indices = c.input(1);
  Output rows = c.grad(0);
  const Output dense_shape = ops::VariableShape(handle, DType::kInt64);
  if (indices.shape().rank() != 1) {
    if (!variable.has_rank() || !variable.Sub(1, variable.rank()).IsFullyDefined()) {
      throw UnimplementedError(StrCat("[ops/state] expected a known row shape for the gradient of ",
                                      c.node().Describe(), "; got variable shape ", variable));
    }
    std::vector<int64_t> shape(variable.dims().begin(), variable.dims().end());
    shape[0] = -1;
    indices = ops::Reshape(indices, std::vector<int64_t>{-1});
    rows = ops::Reshape(rows, shape);
  }
  c.SetInput(0, Gradient(rows, indices, dense_shape));
}

void RegisterScatter(OpRegistry& registry, const char* name, const char* doc) {
  registry.Register(OpDef(name)
                        .Input("resource: resource")
                        .Input("indices: Tindices")
                        .Input("updates: dtype")
                        .Attr("dtype: {float32, float64, bfloat16, int32, int64}")
                        .Attr("Tindices: {int32, int64}")
                        .ShapeRule(ScatterShape)
                        .NotDifferentiable("changes a variable and has no output")
                        .Stateful()
                        .UpdatesVariable()
                        .Doc(doc));
}

void RegisterAssign(OpRegistry& registry, const char* name, const char* dtypes, const char* doc) {
  OpDef def(name);
  std::move(def).Input("resource: resource").Input("value: dtype").Attr(dtypes);
  if (std::string_view(name) == "AssignVariableOp") {
    std::move(def).Attr("validate_shape: bool = false").KeepsLastInput();
  }
  registry.Register(std::move(def)
                        .ShapeRule(AssignShape)
                        .NotDifferentiable("changes a variable and has no output")
                        .Stateful()
                        .UpdatesVariable()
                        .Doc(doc));
}

// A number in the variable's dtype.
Output ForVariable(Output handle, const ops::Operand& value) {
  if (!value.is_number()) return value.output();
  return value.In(handle.graph(), ops::VariableDType(handle), StrCat("variable '", handle.node->name(), "'"));
}

Node* Scatter(const char* op, Output handle, const ops::Operand& indices, const ops::Operand& updates,
              const NodeName& name) {
  const ColocateWith beside(handle.graph(), HandleNode(handle));
  return ops::Op(op, {handle, indices}).Name(name).Input(ForVariable(handle, updates)).Finish();
}

Node* Assign(const char* op, Output handle, const ops::Operand& value, const NodeName& name) {
  const ColocateWith beside(handle.graph(), HandleNode(handle));
  return ops::Op(op, {handle, ForVariable(handle, value)}).Name(name).Finish();
}

}  // namespace

namespace ops {

DType VariableDType(Output handle) {
  const Node& node = HandleNode(handle);
  const DType dtype = HandleDType(handle);
  if (dtype == DType::kInvalid) {
    throw InvalidArgumentError(StrCat("[ops/state] expected the handle of a variable; got ", node.Describe(),
                                      ", which does not say its dtype"));
  }
  return dtype;
}
Shape VariableShapeOf(Output handle) { return HandleShape(handle); }

Output VarHandleOp(Graph& graph, DType dtype, const Shape& shape, const std::string& shared_name,
                   const std::string& container, const NodeName& name) {
  return graph.Op("VarHandleOp")
      .Name(name)
      .Attr("dtype", dtype)
      .Attr("shape", shape)
      .Attr("shared_name", shared_name)
      .Attr("container", container)
      .Finish1();
}

Output ReadVariableOp(Output handle, const NodeName& name) {
  const ColocateWith beside(handle.graph(), HandleNode(handle));
  return OnVariable(handle, "ReadVariableOp", name).Attr("dtype", VariableDType(handle)).Finish1();
}

Node* AssignVariableOp(Output handle, const Operand& value, const NodeName& name) {
  return Assign("AssignVariableOp", handle, value, name);
}
Node* AssignAddVariableOp(Output handle, const Operand& value, const NodeName& name) {
  return Assign("AssignAddVariableOp", handle, value, name);
}
Node* AssignSubVariableOp(Output handle, const Operand& value, const NodeName& name) {
  return Assign("AssignSubVariableOp", handle, value, name);
}

Output VarIsInitializedOp(Output handle, const NodeName& name) {
  const ColocateWith beside(handle.graph(), HandleNode(handle));
  return OnVariable(handle, "VarIsInitializedOp", name).Finish1();
}

Output VariableShape(Output handle, DType out_type, const NodeName& name) {
  const ColocateWith beside(handle.graph(), HandleNode(handle));
  return OnVariable(handle, "VariableShape", name).Attr("out_type", out_type).Finish1();
}

Output ResourceGather(Output handle, const Operand& indices, const NodeName& name) {
  const ColocateWith beside(handle.graph(), HandleNode(handle));
  return Op("ResourceGather", {handle, indices}).Name(name).Attr("dtype", VariableDType(handle)).Finish1();
}

Node* ResourceScatterAdd(Output handle, const Operand& indices, const Operand& updates, const NodeName& name) {
  return Scatter("ResourceScatterAdd", handle, indices, updates, name);
}
Node* ResourceScatterSub(Output handle, const Operand& indices, const Operand& updates, const NodeName& name) {
  return Scatter("ResourceScatterSub", handle, indices, updates, name);
}
Node* ResourceScatterUpdate(Output handle, const Operand& indices, const Operand& updates, const NodeName& name) {
  return Scatter("ResourceScatterUpdate", handle, indices, updates, name);
}

}  // namespace ops

namespace {

void RegisterVariableValues(OpRegistry& registry) {
  registry.Register(
      OpDef("VarHandleOp")
          .Output("resource: resource")
          .Attr("container: string = ''")
          .Attr("shared_name: string = ''")
          .Attr("dtype: type")
          .Attr("shape: shape")
          .ShapeRule(ops::ScalarShape)
          .NotDifferentiable("a handle is not a number")
          .Stateful()
          .Doc("Handle of the variable (container, shared_name) of this task, made where there is none."));
  registry.Register(OpDef("ReadVariableOp")
                        .Input("resource: resource")
                        .Output("value: dtype")
                        .Attr("dtype: type")
                        .ShapeRule([](ShapeContext& c) {
                          CheckDType(c, 0, c.attr<DType>("dtype"));
                          return std::vector<Shape>{c.handle_shape(0)};
                        })
                        .Gradient([](GradientContext& c) { c.SetInput(0, c.raw_grad(0)); })
                        .Stateful()
                        .ReturnsKeptValue()
                        .Doc("The whole value of a variable; FailedPreconditionError where it has none yet."));
  RegisterAssign(registry, "AssignVariableOp", "dtype: type", "Makes `value` the variable's value.");
  RegisterAssign(registry, "AssignAddVariableOp", "dtype: {float32, float64, bfloat16, int32, int64}",
                 "variable += value.");
  RegisterAssign(registry, "AssignSubVariableOp", "dtype: {float32, float64, bfloat16, int32, int64}",
                 "variable -= value.");
}

void RegisterVariableFacts(OpRegistry& registry) {
  registry.Register(OpDef("VarIsInitializedOp")
                        .Input("resource: resource")
                        .Output("is_initialized: bool")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("a truth value")
                        .Stateful()
                        .Doc("Whether the variable has a value."));
  registry.Register(OpDef("VariableShape")
                        .Input("input: resource")
                        .HostOutput("output: out_type")
                        .Attr("out_type: {int32, int64} = int32")
                        .ShapeRule([](ShapeContext& c) {
                          const Shape shape = c.handle_shape(0);
                          return std::vector<Shape>{Shape{shape.has_rank() ? shape.rank() : Shape::kUnknownDim}};
                        })
                        .NotDifferentiable("a shape")
                        .Stateful()
                        .Doc("Shape of a variable, without reading its value."));
}

void RegisterVariableRows(OpRegistry& registry) {
  registry.Register(OpDef("ResourceGather")
                        .Input("resource: resource")
                        .Input("indices: Tindices")
                        .Output("output: dtype")
                        .Attr("batch_dims: int = 0")
                        .Attr("validate_indices: bool = true")
                        .Attr("dtype: type")
                        .Attr("Tindices: {int32, int64}")
                        .ShapeRule(GatherShape)
                        .Gradient(GatherGradient)
                        .Stateful()
                        .Doc("Rows of a variable: output[i, ...] = variable[indices[i], ...]. Each row is whole."));
  RegisterScatter(registry, "ResourceScatterAdd", "variable[indices[i], ...] += updates[i, ...]; repeats add up.");
  RegisterScatter(registry, "ResourceScatterSub", "variable[indices[i], ...] -= updates[i, ...]; repeats add up.");
  RegisterScatter(registry, "ResourceScatterUpdate",
                  "variable[indices[i], ...] = updates[i, ...]; of repeats the last one stays.");
  // A backend adds it before updates that must not be applied if this one fails.
  registry.Register(OpDef("_CheckIndices")
                        .Input("resource: resource")
                        .Input("indices: Tindices")
                        .Attr("op: string")
                        .Attr("update: string")
                        .Attr("Tindices: {int32, int64}")
                        .ShapeRule([](ShapeContext&) { return std::vector<Shape>(); })
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Fails as the node `update` of op `op` does if an index is not a row of the variable."));
}

}  // namespace

void RegisterStateOps(OpRegistry& registry) {
  RegisterVariableValues(registry);
  RegisterVariableFacts(registry);
  RegisterVariableRows(registry);
}

}  // namespace cohort
