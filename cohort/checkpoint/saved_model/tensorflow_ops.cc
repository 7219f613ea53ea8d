#include "cohort/checkpoint/saved_model/tensorflow_ops.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/einsum.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/unary.h"

namespace cohort::saved_model {
namespace {

using Outputs = std::vector<Output>;

template <typename T>
const T& AttrOf(const AttrMap& attrs, const char* name) {
  const auto it = attrs.find(name);
  const T* value = it == attrs.end() ? nullptr : it->second.get<T>();
  if (value == nullptr) throw InvalidArgumentError(StrCat("attribute '", name, "' is missing or of another type"));
  return *value;
}

// ---- element by element --------------------------------------------------------------------------------------------

// For a large x the result has the absolute error of Erf, and not a small relative one.
Outputs Erfc(Graph&, const Outputs& in, const AttrMap&) { return {1.0f - ops::Erf(in[0])}; }

Outputs Softsign(Graph&, const Outputs& in, const AttrMap&) { return {in[0] / (ops::Abs(in[0]) + 1.0f)}; }

Outputs Xor(Graph&, const Outputs& in, const AttrMap&) {
  return {ops::LogicalAnd(ops::LogicalOr(in[0], in[1]), ops::LogicalNot(ops::LogicalAnd(in[0], in[1])))};
}

// 0 where y is 0.
Outputs DivNoNan(Graph&, const Outputs& in, const AttrMap&) {
  const Output zero = ops::Equal(in[1], 0.0f);
  const Output quotient = in[0] / ops::SelectV2(zero, ops::OnesLike(in[1]), in[1]);
  return {ops::SelectV2(zero, ops::ZerosLike(quotient), quotient)};
}
Outputs MulNoNan(Graph&, const Outputs& in, const AttrMap&) {
  const Output product = in[0] * in[1];
  return {ops::SelectV2(ops::Equal(in[1], 0.0f), ops::ZerosLike(product), product)};
}

Outputs CheckNumerics(Graph& graph, const Outputs& in, const AttrMap& attrs) {
  Node* check =
      ops::Assert(ops::All(ops::IsFinite(in[0])), {ops::Const(graph, AttrOf<std::string>(attrs, "message")), in[0]});
  const ControlDependencies after(graph, {check});
  return {ops::Identity(in[0])};
}

// The value; the step fails if it has another shape.
Outputs EnsureShape(Graph& graph, const Outputs& in, const AttrMap& attrs) {
  const Shape& wanted = AttrOf<Shape>(attrs, "shape");
  if (!wanted.has_rank() || in[0].shape().CommonWith(wanted) == wanted) return {in[0]};
  const Output dims = ops::ShapeOf(in[0], DType::kInt64);
  const Output expected = ops::IntVector(graph, {wanted.dims().begin(), wanted.dims().end()});
  const Output expected64 = ops::Cast(expected, DType::kInt64);
  const Output rank_fits = ops::Equal(ops::Rank(in[0]), wanted.rank());
  const ControlDependencies after_rank(graph, {ops::Assert(rank_fits, {dims, expected64})});
  const Output fits = ops::LogicalOr(ops::Equal(ops::Identity(dims), expected64), ops::Less(expected64, int64_t{0}));
  const ControlDependencies after(graph, {ops::Assert(ops::All(fits), {dims, expected64})});
  return {ops::Identity(in[0])};
}

// ---- matrices ------------------------------------------------------------------------------------------------------

Outputs Einsum(Graph&, const Outputs& in, const AttrMap& attrs) {
  return {ops::Einsum(AttrOf<std::string>(attrs, "equation"), in)};
}

Outputs BatchMatMul(Graph& graph, const Outputs& in, const AttrMap& attrs) {
  const Output product = graph.Op("BatchMatMulV2")
                             .Input(in[0])
                             .Input(in[1])
                             .Attr("adj_x", AttrOf<bool>(attrs, "adj_x"))
                             .Attr("adj_y", AttrOf<bool>(attrs, "adj_y"))
                             .Finish1();
  const auto result = attrs.find("Tout");
  return {result == attrs.end() ? product : ops::Cast(product, AttrOf<DType>(attrs, "Tout"))};
}

// Element `i` of a vector, as a vector of one element; -1 is the last one.
Output Element(Output vector, int64_t i) {
  return ops::StridedSlice(vector, {i}, {i == -1 ? 0 : i + 1}, {1}, {.end_mask = i == -1 ? 1 : 0});
}
Output Scalar(Output vector) { return ops::Reshape(vector, std::vector<int64_t>{}); }

// Keeps the elements of the innermost matrices that are at most num_lower below and num_upper above the diagonal; a
// negative number keeps all.
Outputs MatrixBandPart(Graph& graph, const Outputs& in, const AttrMap&) {
  const Output shape = ops::ShapeOf(in[0]);
  const Output zero = ops::Const(graph, 0), one = ops::Const(graph, 1);
  const Output row = ops::Range(zero, Scalar(Element(shape, -2)), one);
  const Output column = ops::Range(zero, Scalar(Element(shape, -1)), one);
  const Output below = ops::ExpandDims(row, 1) - ops::ExpandDims(column, 0);
  const Output lower = ops::Cast(in[1], DType::kInt32), upper = ops::Cast(in[2], DType::kInt32);
  const Output keep = ops::LogicalAnd(ops::LogicalOr(ops::Less(lower, 0), ops::LessEqual(below, lower)),
                                      ops::LogicalOr(ops::Less(upper, 0), ops::LessEqual(ops::Sub(0, below), upper)));
  return {ops::SelectV2(keep, in[0], ops::ZerosLike(in[0]))};
}

// ---- blocks of images ----------------------------------------------------------------------------------------------

// The number of block dimensions, and the rank of the value. Both must be known.
std::pair<int, int> BlockRanks(const Outputs& in) {
  const Shape& blocks = in[1].shape();
  const int rank = in[0].shape().has_rank() ? in[0].shape().rank() : 0;
  if (blocks.rank() != 1 || blocks.dim(0) < 1 || rank <= blocks.dim(0)) {
    throw InvalidArgumentError(StrCat("expected a value of known rank, with a dimension before those of the blocks ",
                                      blocks, "; got shape ", in[0].shape()));
  }
  return {static_cast<int>(blocks.dim(0)), rank};
}

Output Column(Output pairs, int64_t i) {
  return ops::Squeeze(ops::StridedSlice(pairs, {0, i}, {0, i + 1}, {1, 1}, {.begin_mask = 1, .end_mask = 1}), {1});
}

// Pads, cuts dimensions 1 to M into blocks, and moves the place in the block to the batch.
Outputs SpaceToBatch(Graph& graph, const Outputs& in, const AttrMap&) {
  const auto [m, rank] = BlockRanks(in);
  const Output block = ops::Cast(in[1], DType::kInt32), pairs = ops::Cast(in[2], DType::kInt32);
  const Output before = ops::Const(graph, Tensor::Zeros(DType::kInt32, Shape{1, 2}));
  const Output behind = ops::Const(graph, Tensor::Zeros(DType::kInt32, Shape{rank - m - 1, 2}));
  const Output padded = graph.Op("Pad").Input(in[0]).Input(ops::Concat({before, pairs, behind}, 0)).Finish1();
  const Output shape = ops::ShapeOf(padded);
  Outputs dims = {Element(shape, 0)}, flat = {Element(shape, 0) * ops::Prod(block, 0, true)};
  std::vector<int64_t> places, counts;
  for (int i = 0; i < m; ++i) {
    const Output size = Element(block, i), count = ops::FloorDiv(Element(shape, i + 1), size);
    dims.insert(dims.end(), {count, size});
    flat.push_back(count);
    counts.push_back(2 * i + 1);
    places.push_back(2 * i + 2);
  }
  std::vector<int64_t> order = places;
  order.push_back(0);
  order.insert(order.end(), counts.begin(), counts.end());
  for (int i = m + 1; i < rank; ++i) {
    dims.push_back(Element(shape, i));
    flat.push_back(Element(shape, i));
    order.push_back(i + m);
  }
  return {ops::Reshape(ops::Transpose(ops::Reshape(padded, ops::Concat(dims, 0)), order), ops::Concat(flat, 0))};
}

// The reverse: moves the place in the block back, and crops.
Outputs BatchToSpace(Graph& graph, const Outputs& in, const AttrMap&) {
  const auto [m, rank] = BlockRanks(in);
  const Output block = ops::Cast(in[1], DType::kInt32), crops = ops::Cast(in[2], DType::kInt32);
  const Output shape = ops::ShapeOf(in[0]);
  const Output batch = ops::FloorDiv(Element(shape, 0), ops::Prod(block, 0, true));
  Outputs dims, flat = {batch};
  for (int i = 0; i < m; ++i) dims.push_back(Element(block, i));
  dims.push_back(batch);
  std::vector<int64_t> order = {m};
  for (int i = 0; i < m; ++i) {
    dims.push_back(Element(shape, i + 1));
    flat.push_back(Element(shape, i + 1) * Element(block, i));
    order.insert(order.end(), {m + 1 + i, i});
  }
  for (int i = m + 1; i < rank; ++i) {
    dims.push_back(Element(shape, i));
    flat.push_back(Element(shape, i));
    order.push_back(i + m);
  }
  const Output sizes = ops::Concat(flat, 0);
  const Output whole = ops::Reshape(ops::Transpose(ops::Reshape(in[0], ops::Concat(dims, 0)), order), sizes);
  const Output before = ops::Const(graph, Tensor::Zeros(DType::kInt32, Shape{1}));
  const Output behind = ops::Const(graph, Tensor::Zeros(DType::kInt32, Shape{rank - m - 1}));
  const Output begin = ops::Concat({before, Column(crops, 0), behind}, 0);
  const Output end = ops::Concat({before, Column(crops, 1), behind}, 0);
  return {ops::Slice(whole, begin, sizes - begin - end)};
}

// Images are [batch, channels, rows, columns]. Keras 2 has this form in LayerNormalization.
Outputs BatchNormNchw(Graph& graph, const Outputs& in, const AttrMap& attrs) {
  AttrMap ours = attrs;
  ours.insert_or_assign("data_format", AttrValue("NHWC"));
  NodeBuilder builder = graph.Op("FusedBatchNormV3");
  builder.Input(ops::Transpose(in[0], {0, 2, 3, 1})).Attrs(ours);
  for (size_t i = 1; i < in.size(); ++i) builder.Input(in[i]);
  const Node* norm = builder.Finish();
  Outputs results = {ops::Transpose(norm->output(0), {0, 3, 1, 2})};
  for (int i = 1; i < norm->num_outputs(); ++i) results.push_back(norm->output(i));
  return results;
}

// ---- counts --------------------------------------------------------------------------------------------------------

// How often each number below `size` occurs in the input, or in each of its rows, or the sum of its weights. With
// binary_output whether it occurs. Other numbers are left out.
Outputs DenseBincount(Graph& graph, const Outputs& in, const AttrMap& attrs) {
  const int rank = in[0].shape().has_rank() ? in[0].shape().rank() : 0;
  if (rank != 1 && rank != 2) {
    throw InvalidArgumentError(StrCat("expected an input of rank 1 or 2; got shape ", in[0].shape()));
  }
  const Shape& of_weights = in[2].shape();
  if (!of_weights.has_rank() || (of_weights.rank() == 1 && of_weights.dim(0) < 0)) {
    throw UnimplementedError(StrCat("expected weights of which is known whether there are any; got ", of_weights));
  }
  const DType dtype = in[2].dtype();
  const Output input = ops::Cast(in[0], DType::kInt64), size = ops::Cast(in[1], DType::kInt64);
  const Output rows = rank == 1 ? ops::IntVector(graph, {1}) : Element(ops::ShapeOf(in[0]), 0);
  const Output rows64 = ops::Cast(rows, DType::kInt64);
  const Output zero = ops::Const(graph, int64_t{0}), one = ops::Const(graph, int64_t{1});
  const Output valid = ops::LogicalAnd(ops::GreaterEqual(input, zero), ops::Less(input, size));
  Output ids = input;
  if (rank == 2) ids = ids + ops::ExpandDims(ops::Range(zero, Scalar(rows64), one), 1) * size;
  ids = ops::SelectV2(valid, ids, ops::ZerosLike(ids) - one);
  const bool binary = AttrOf<bool>(attrs, "binary_output");
  const bool weighted = !binary && of_weights != Shape{0};
  const Output amounts = weighted ? in[2] : ops::Cast(ops::OnesLike(ids), dtype);
  Output counts = ops::UnsortedSegmentSum(ops::Reshape(amounts, -1), ops::Reshape(ids, -1), Scalar(rows64) * size);
  if (binary) counts = ops::Cast(ops::Greater(counts, ops::ZerosLike(counts)), dtype);
  const Output wide = ops::Reshape(size, 1);
  return {ops::Reshape(counts, rank == 1 ? wide : ops::Concat({rows64, wide}, 0))};
}

// --------------------------------------------------------------------------------------------------------------------

OpDef UnaryOp(const char* name) { return OpDef(name).Input("x: T").Output("y: T").Attr("T: type"); }
OpDef BinaryOp(const char* name) { return OpDef(name).Input("x: T").Input("y: T").Output("z: T").Attr("T: type"); }
OpDef MatrixProduct(const char* name) {
  return OpDef(name)
      .Input("x: Ta")
      .Input("y: Tb")
      .Output("output: Tout")
      .Attr("adj_x: bool = false")
      .Attr("adj_y: bool = false");
}
OpDef BlockOp(const char* name, const char* pairs) {
  return OpDef(name)
      .Input("input: T")
      .Input("block_shape: Tblock_shape")
      .Input(std::string(pairs) + ": Tpairs")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tblock_shape: type")
      .Attr("Tpairs: type");
}

ForeignOps MakeOps() {
  ForeignOps ops;
  ops.Add(UnaryOp("Erfc"), Erfc);
  ops.Add(OpDef("Softsign").Input("features: T").Output("activations: T").Attr("T: type"), Softsign);
  ops.Add(OpDef("LogicalXor").Input("x: bool").Input("y: bool").Output("z: bool"), Xor);
  ops.Add(BinaryOp("DivNoNan"), DivNoNan);
  ops.Add(BinaryOp("MulNoNan"), MulNoNan);
  // It may fail, so it runs also if nothing but a control input needs it.
  ops.Add(
      OpDef("CheckNumerics").Input("tensor: T").Output("output: T").Attr("T: type").Attr("message: string").Stateful(),
      CheckNumerics);
  ops.Add(OpDef("EnsureShape").Input("input: T").Output("output: T").Attr("T: type").Attr("shape: shape"), EnsureShape);
  ops.Add(OpDef("Einsum")
              .Input("inputs: N * T")
              .Output("output: T")
              .Attr("equation: string")
              .Attr("N: int >= 1")
              .Attr("T: type"),
          Einsum);
  ops.Add(MatrixProduct("BatchMatMulV3").Attr("Ta: type").Attr("Tb: type").Attr("Tout: type"), BatchMatMul);
  ops.Add(OpDef("BatchMatMul")
              .Input("x: T")
              .Input("y: T")
              .Output("output: T")
              .Attr("T: type")
              .Attr("adj_x: bool = false")
              .Attr("adj_y: bool = false"),
          BatchMatMul);
  ops.Add(OpDef("MatrixBandPart")
              .Input("input: T")
              .Input("num_lower: Tindex")
              .Input("num_upper: Tindex")
              .Output("band: T")
              .Attr("T: type")
              .Attr("Tindex: type = DT_INT64"),
          MatrixBandPart);
  ops.Add(BlockOp("SpaceToBatchND", "paddings"), SpaceToBatch);
  ops.Add(BlockOp("BatchToSpaceND", "crops"), BatchToSpace);
  ops.AddForm(
      "FusedBatchNormV3",
      [](const AttrMap& attrs) {
        const auto format = attrs.find("data_format");
        return format != attrs.end() && format->second == AttrValue("NCHW");
      },
      BatchNormNchw);
  ops.Add(OpDef("DenseBincount")
              .Input("input: Tidx")
              .Input("size: Tidx")
              .Input("weights: T")
              .Output("output: T")
              .Attr("Tidx: type")
              .Attr("T: type")
              .Attr("binary_output: bool = false"),
          DenseBincount);
  return ops;
}

}  // namespace

const ForeignOps& TensorFlowOps() {
  static const ForeignOps ops = MakeOps();
  return ops;
}

}  // namespace cohort::saved_model
