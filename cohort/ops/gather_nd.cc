#include "cohort/ops/gather_nd.h"

#include <cstddef>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/array.h"
#include "cohort/ops/dims.h"
#include "cohort/ops/nd_index.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/unary.h"

namespace cohort::ops {

Output GatherNd(Output params, const Operand& indices, const NodeName& name) {
  return Op("GatherNd", {params, indices}, name).Finish1();
}
Output ScatterNd(const Operand& indices, Output updates, const IntList& shape, const NodeName& name) {
  const Output dims = Cast(shape.In(updates.graph()), indices.dtype());
  return Op("ScatterNd", {indices, updates, dims}, name).Finish1();
}
Output TensorScatterUpdate(Output tensor, const Operand& indices, Output updates, const NodeName& name) {
  return Op("TensorScatterUpdate", {tensor, indices, updates}, name).Finish1();
}
Output TensorScatterAdd(Output tensor, const Operand& indices, Output updates, const NodeName& name) {
  return Op("TensorScatterAdd", {tensor, indices, updates}, name).Finish1();
}
Output TensorScatterSub(Output tensor, const Operand& indices, Output updates, const NodeName& name) {
  return Op("TensorScatterSub", {tensor, indices, updates}, name).Finish1();
}

Output SparseToDense(const Operand& sparse_indices, const IntList& output_shape, Output sparse_values,
                     const Operand& default_value, bool validate_indices, const NodeName& name) {
  Graph& graph = sparse_values.graph();
  const DType dtype = sparse_indices.is_number() ? DType::kInt32 : sparse_indices.dtype();
  const Output indices = sparse_indices.In(graph, dtype, "the indices of SparseToDense");
  const Output dims = Cast(output_shape.In(graph), dtype);
  return Op("SparseToDense", {indices, dims, sparse_values, default_value}, name)
      .Attr("validate_indices", validate_indices)
      .Finish1();
}

namespace {

// The number of coordinates, or -1 if it is not known.
int DepthOf(const Shape& indices, const Shape& whole) {
  if (indices.has_rank() && indices.rank() == 0) {
    throw InvalidArgumentError("indices must have at least one dimension, that of the coordinates; got a scalar");
  }
  if (!indices.has_rank()) return -1;
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth >= 0 && whole.has_rank() && depth > whole.rank()) {
    throw InvalidArgumentError(StrCat("indices of shape ", indices, " have ", depth,
                                      " coordinates each, but the tensor that they look into has the shape ", whole));
  }
  return static_cast<int>(depth);
}

}  // namespace

NdIndex NdIndexOf(const Shape& indices, const Shape& whole) {
  const int depth = DepthOf(indices, whole);
  return {depth, whole.Sub(0, depth).num_elements(), whole.Sub(depth, whole.rank()).num_elements(),
          indices.Sub(0, indices.rank() - 1).num_elements()};
}

Shape ShapeOfScatterNd(const Tensor& shape) {
  Shape whole;
  for (const int64_t dim : IntegerValues(shape)) {
    if (dim < 0) throw InvalidArgumentError(StrCat("shape must not have negative dimensions; got ", dim));
    whole.AddDim(dim);
  }
  return whole;
}

void CheckNdUpdates(const Shape& indices, const Shape& updates, const Shape& whole) {
  const int depth = DepthOf(indices, whole);
  if (depth < 0 || !whole.has_rank()) return;
  const Shape expected = indices.Sub(0, indices.rank() - 1).Concat(whole.Sub(depth, whole.rank()));
  if (updates.IsCompatibleWith(expected)) return;
  throw InvalidArgumentError(StrCat("expected updates of shape ", expected, " for indices of shape ", indices,
                                    " and a tensor of shape ", whole, "; got ", updates));
}

std::string DescribeNdIndex(int64_t position, int64_t value, const Shape& indices, const Shape& whole) {
  std::vector<int64_t> at(static_cast<size_t>(indices.rank()));
  for (int d = indices.rank() - 1; d >= 0; --d) {
    at[static_cast<size_t>(d)] = position % indices.dim(d);
    position /= indices.dim(d);
  }
  const int dim = static_cast<int>(at.back());
  return StrCat("indices[", StrJoin(at, ","), "] = ", value, " is not in [0, ", whole.dim(dim), "), dimension ", dim,
                " of the tensor of shape ", whole, "; indices have shape ", indices);
}

namespace {

std::vector<Shape> GatherNdShape(ShapeContext& c) {
  const Shape& params = c.input(0);
  const Shape& indices = c.input(1);
  const int depth = DepthOf(indices, params);
  if (depth < 0 || !params.has_rank()) return UnknownShapes(1);
  return {indices.Sub(0, indices.rank() - 1).Concat(params.Sub(depth, params.rank()))};
}

std::vector<Shape> ScatterNdShape(ShapeContext& c) {
  c.WithRank(2, 1);
  const Shape whole = c.input_as_shape(2);
  CheckNdUpdates(c.input(0), c.input(1), whole);
  return {whole};
}

std::vector<Shape> TensorScatterShape(ShapeContext& c) {
  CheckNdUpdates(c.input(1), c.input(2), c.input(0));
  return {c.input(0)};
}

void GatherNdGradient(GradientContext& c) {
  c.SetInput(0, ScatterNd(c.input(1), c.grad(), ShapeValue(c.input(0), c.input(1).dtype())));
}

// What an update does to the old value: nothing is left of it, or all of it.
GradientFn TensorScatterGradient(bool replaces, bool negative) {
  return [=](GradientContext& c) {
    const Output g = c.grad(), indices = c.input(1);
    c.SetInput(0, replaces ? TensorScatterUpdate(g, indices, ZerosLike(c.input(2))) : g);
    const Output updates = GatherNd(g, indices);
    c.SetInput(2, negative ? -updates : updates);
  };
}

std::vector<Shape> SparseToDenseShape(ShapeContext& c) {
  c.WithRank(1, 1);
  c.WithRank(3, 0);
  const Shape& indices = c.input(0);
  const Shape& values = c.input(2);
  if (indices.has_rank() && indices.rank() > 2) {
    throw InvalidArgumentError(StrCat("expected sparse_indices of rank 0, 1 or 2; got ", indices));
  }
  if (values.has_rank() && values.rank() > 1) {
    throw InvalidArgumentError(StrCat("expected sparse_values of rank 0 or 1; got ", values));
  }
  return {c.input_as_shape(1)};
}

void SparseToDenseGradient(GradientContext& c) {
  const Output g = c.grad(), indices = c.input(0), values = c.input(2);
  if (!indices.shape().has_rank() || !values.shape().has_rank()) {
    throw InvalidArgumentError("the gradient of SparseToDense needs the ranks of its indices and values");
  }
  const int rank = indices.shape().rank();
  const Output elements = GatherNd(g, rank == 2 ? indices : Reshape(indices, {-1, 1}));
  const Output sum = Sum(elements);
  c.SetInput(2, values.shape().rank() == 0 ? sum : elements);
  c.SetInput(3, Sum(g) - sum);
}

OpDef TensorScatterOp(const char* name, const char* types, const char* doc) {
  return OpDef(name)
      .Input("tensor: T")
      .Input("indices: Tindices")
      .Input("updates: T")
      .Output("output: T")
      .Attr(types)
      .Attr("Tindices: {int32, int64}")
      .ShapeRule(TensorScatterShape)
      .Doc(doc);
}

constexpr const char* kNumbers = "T: {bfloat16, half, float, double, uint8, int32, int64}";

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterGatherNdOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("GatherNd")
                        .Input("params: Tparams")
                        .Input("indices: Tindices")
                        .Output("output: Tparams")
                        .Attr("Tparams: type")
                        .Attr("Tindices: {int32, int64}")
                        .ShapeRule(GatherNdShape)
                        .Gradient(GatherNdGradient)
                        .Doc("The elements or slices of params that the coordinates in the last dimension of indices "
                             "select."));
  registry.Register(OpDef("ScatterNd")
                        .Input("indices: Tindices")
                        .Input("updates: T")
                        .HostInput("shape: Tindices")
                        .Output("output: T")
                        .Attr(kNumbers)
                        .Attr("Tindices: {int32, int64}")
                        .ShapeRule(ScatterNdShape)
                        .Gradient([](GradientContext& c) { c.SetInput(1, GatherNd(c.grad(), c.input(0))); })
                        .Doc("Zeros of `shape`, to which the updates are added at the coordinates in indices."));
  registry.Register(OpDef("SparseToDense")
                        .Input("sparse_indices: Tindices")
                        .HostInput("output_shape: Tindices")
                        .Input("sparse_values: T")
                        .Input("default_value: T")
                        .Output("dense: T")
                        .Attr("validate_indices: bool = true")
                        .Attr("T: type")
                        .Attr("Tindices: {int32, int64}")
                        .ShapeRule(SparseToDenseShape)
                        .Gradient(SparseToDenseGradient)
                        .Doc("Values put where the indices say, and a default elsewhere."));
  registry.Register(TensorScatterOp("TensorScatterUpdate", "T: type",
                                    "The tensor with the updates in place of what is at the coordinates in indices.")
                        .Gradient(TensorScatterGradient(true, false)));
  registry.Register(TensorScatterOp("TensorScatterAdd", kNumbers,
                                    "The tensor with the updates added to what is at the coordinates in indices.")
                        .Gradient(TensorScatterGradient(false, false)));
  registry.Register(TensorScatterOp("TensorScatterSub", kNumbers,
                                    "The tensor with the updates subtracted from what is at the coordinates.")
                        .Gradient(TensorScatterGradient(false, true)));
}

}  // namespace cohort
