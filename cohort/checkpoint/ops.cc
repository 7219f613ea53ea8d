// The schemas and shape rules of SaveV2, RestoreV2 and the internal snapshot ops, and the functions that add SaveV2 and
// RestoreV2 to a graph. The kernels are in kernels.cc.
#include "cohort/checkpoint/ops.h"

#include "cohort/checkpoint/tensor_slice.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

void CheckNames(ShapeContext& c, size_t tensors) {
  const auto n = static_cast<int64_t>(tensors);
  c.WithRank(0, 0);
  for (const int i : {1, 2}) {
    const int64_t have = c.WithRank(i, 1).dim(0);
    if (have >= 0 && have != n) {
      throw InvalidArgumentError(StrCat("[checkpoint] expected ", n, " names and slices, one a tensor; got ", have));
    }
  }
}

std::vector<Shape> SaveShape(ShapeContext& c) {
  CheckNames(c, c.attr<std::vector<DType>>("dtypes").size());
  return {};
}

std::vector<Shape> RestoreShapes(ShapeContext& c) {
  const size_t n = c.attr<std::vector<DType>>("dtypes").size();
  CheckNames(c, n);
  std::vector<Shape> shapes(n, Shape::UnknownRank());
  const std::optional<Tensor> slices = c.input_value(2);
  for (size_t i = 0; slices && i < n; ++i) {
    const auto [full, slice] = ParseShapeAndSlice(slices->data<std::string>()[i]);
    if (full.has_rank()) shapes[i] = slice.ShapeIn(full);
  }
  return shapes;
}

void RegisterSaveAndRestore(OpRegistry& registry) {
  registry.Register(OpDef("SaveV2")
                        .HostInput("prefix: string")
                        .HostInput("tensor_names: string")
                        .HostInput("shape_and_slices: string")
                        .HostInput("tensors: dtypes")
                        .Attr("dtypes: list(type) >= 1")
                        .ShapeRule(SaveShape)
                        .NotDifferentiable("writes files and has no output")
                        .Stateful()
                        .Doc("Writes tensors, or slices of larger ones, as the checkpoint `prefix`."));
  registry.Register(OpDef("RestoreV2")
                        .HostInput("prefix: string")
                        .HostInput("tensor_names: string")
                        .HostInput("shape_and_slices: string")
                        .HostOutput("tensors: dtypes")
                        .Attr("dtypes: list(type) >= 1")
                        .ShapeRule(RestoreShapes)
                        .NotDifferentiable("reads files; its inputs are texts")
                        .Stateful()
                        .Doc("Reads tensors, or slices of them, from the checkpoint `prefix`."));
  registry.Register(
      OpDef("_CheckpointProbe")
          .HostInput("path: string")
          .HostInput("content: string")
          .ShapeRule(ops::NoOutputs)
          .NotDifferentiable("has no output")
          .Stateful()
          .Doc("Fails with FailedPreconditionError unless this task sees the file `path` with `content`."));
}

void RegisterSnapshots(OpRegistry& registry) {
  const char* not_a_number = "handles and bytes of a checkpoint";
  registry.Register(OpDef("_SnapshotTake")
                        .Input("resources: N * resource")
                        .HostOutput("snapshot: int64")
                        .HostOutput("shapes: int64")
                        .Attr("N: int >= 1")
                        .Attr("names: list(string) >= 1")
                        .Attr("shape_and_slices: list(string) >= 1")
                        .ShapeRule([](ShapeContext&) {
                          return std::vector<Shape>{Shape(), Shape{Shape::kUnknownDim}};
                        })
                        .NotDifferentiable(not_a_number)
                        .Stateful()
                        .Doc("Keeps the present values of variables, as they are between two update sets of this task, "
                             "under a new number; `shapes` has rank and dimensions of each, one after another."));
  registry.Register(OpDef("_SnapshotRead")
                        .HostInput("request: int64")
                        .HostOutput("data: uint8")
                        .ShapeRule([](ShapeContext& c) {
                          c.WithRank(0, 1);
                          return std::vector<Shape>{Shape{Shape::kUnknownDim}};
                        })
                        .NotDifferentiable(not_a_number)
                        .Stateful()
                        .Doc("request [snapshot, variable, offset, bytes]: that many bytes of one value."));
  registry.Register(OpDef("_SnapshotReadStrings")
                        .HostInput("request: int64")
                        .HostOutput("data: string")
                        .ShapeRule([](ShapeContext& c) {
                          c.WithRank(0, 1);
                          return std::vector<Shape>{Shape::UnknownRank()};
                        })
                        .NotDifferentiable(not_a_number)
                        .Stateful()
                        .Doc("request [snapshot, variable]: the whole value of a string variable."));
  registry.Register(OpDef("_SnapshotWrite")
                        .HostInput("snapshot: int64")
                        .HostInput("prefix: string")
                        .ShapeRule(ops::NoOutputs)
                        .NotDifferentiable(not_a_number)
                        .Stateful()
                        .Doc("Writes all values of a snapshot as the checkpoint `prefix`, here."));
  registry.Register(OpDef("_SnapshotDrop")
                        .HostInput("snapshot: int64")
                        .ShapeRule(ops::NoOutputs)
                        .NotDifferentiable(not_a_number)
                        .Stateful()
                        .Doc("Frees a snapshot; nothing where there is none of the number."));
}

}  // namespace

void RegisterCheckpointOps(OpRegistry& registry) {
  RegisterSaveAndRestore(registry);
  RegisterSnapshots(registry);
}

namespace ops {

Node* SaveV2(Output prefix, Output tensor_names, Output shape_and_slices, const std::vector<Output>& tensors,
             const NodeName& name) {
  return prefix.graph()
      .Op("SaveV2")
      .Name(name)
      .Input(prefix)
      .Input(tensor_names)
      .Input(shape_and_slices)
      .Inputs(tensors)
      .Finish();
}

std::vector<Output> RestoreV2(Output prefix, Output tensor_names, Output shape_and_slices,
                              const std::vector<DType>& dtypes, const NodeName& name) {
  Node* node = prefix.graph()
                   .Op("RestoreV2")
                   .Name(name)
                   .Input(prefix)
                   .Input(tensor_names)
                   .Input(shape_and_slices)
                   .Attr("dtypes", dtypes)
                   .Finish();
  std::vector<Output> tensors;
  for (int i = 0; i < node->num_outputs(); ++i) tensors.push_back(node->output(i));
  return tensors;
}

}  // namespace ops
}  // namespace cohort
