#include "cohort/ops/partition.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/broadcast_gradient.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/select.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {

Output UnsortedSegmentSum(Output data, Output segment_ids, Output num_segments, const NodeName& name) {
  return Op("UnsortedSegmentSum", {data, segment_ids, num_segments}, name).Finish1();
}

Output SegmentSum(Output data, Output segment_ids, const NodeName& name) {
  return Op("SegmentSum", {data, segment_ids}, name).Finish1();
}
Output SegmentMean(Output data, Output segment_ids, const NodeName& name) {
  return Op("SegmentMean", {data, segment_ids}, name).Finish1();
}

std::vector<Output> DynamicPartition(Output data, Output partitions, int num_partitions, const NodeName& name) {
  Node* node = Op("DynamicPartition", {data, partitions}, name).Attr("num_partitions", num_partitions).Finish();
  std::vector<Output> parts;
  for (int i = 0; i < num_partitions; ++i) parts.push_back(node->output(i));
  return parts;
}

Output DynamicStitch(const std::vector<Output>& indices, const std::vector<Output>& data, const NodeName& name) {
  if (indices.empty()) throw InvalidArgumentError("[ops] DynamicStitch needs at least one value");
  return indices[0].graph().Op("DynamicStitch").Name(name).Inputs(indices).Inputs(data).Finish1();
}

namespace {

// Dimensions of `data` after those of `ids`, which must agree with data's first ones.
Shape RowShape(const Shape& data, const Shape& ids, const char* what) {
  if (!data.has_rank() || !ids.has_rank()) return Shape::UnknownRank();
  if (ids.rank() > data.rank() || !data.Sub(0, ids.rank()).IsCompatibleWith(ids)) {
    throw InvalidArgumentError(StrCat("data of shape ", data, " must begin with the shape of ", what, ", ", ids));
  }
  return data.Sub(ids.rank(), data.rank());
}

std::vector<Shape> SegmentShape(ShapeContext& c) {
  const Shape row = RowShape(c.input(0), c.input(1), "segment_ids");
  const auto count = KnownInteger(c, 2, "num_segments");
  if (count && *count < 0) throw InvalidArgumentError(StrCat("num_segments must be >= 0; got ", *count));
  return {Shape{count.value_or(-1)}.Concat(row)};
}

// Each row gets the gradient of its segment; rows that were dropped get zeros.
void SegmentGradient(GradientContext& c) {
  const Output ids = c.input(1), data = c.input(0);
  Graph& graph = c.graph();
  const Output zero = ScalarLike(ids, 0);
  const Output rows = Gather(c.grad(), Maximum(ids, zero));
  const Output ones = Fill(ExpandDims(Sub(Rank(data), Rank(ids)), 0), Const(graph, 1));
  const Output kept = Reshape(GreaterEqual(ids, zero), Concat({ShapeOf(ids), ones}, 0));
  c.SetInput(0, SelectV2(kept, rows, ScalarLike(rows, 0)));
}

std::vector<Shape> SortedSegmentShape(ShapeContext& c) {
  c.WithRank(1, 1);
  if (!c.WithRankAtLeast(0, 1).has_rank()) return UnknownShapes(1);
  return {Shape{-1}.Concat(RowShape(c.input(0), c.input(1), "segment_ids"))};
}

void SegmentMeanGradient(GradientContext& c) {
  const Output ids = c.input(1), data = c.input(0), g = c.grad();
  const Output counts = SegmentSum(OnesLike(Cast(ids, data.dtype())), ids);
  // A segment without rows has a count of 0, and no row that asks for its gradient.
  const Output rows = Fill(ExpandDims(Sub(Rank(data), Const(c.graph(), 1)), 0), Const(c.graph(), 1));
  const Output divisors = Reshape(Gather(counts, ids), Concat({ShapeOf(ids), rows}, 0));
  c.SetInput(0, Gather(g, ids) / divisors);
}

OpDef SortedSegmentOp(const char* name, const char* types) {
  return OpDef(name)
      .Input("data: T")
      .Input("segment_ids: Tindices")
      .Output("output: T")
      .Attr(types)
      .Attr("Tindices: {int32, int64}")
      .ShapeRule(SortedSegmentShape)
      .DataDependentShape();
}

std::vector<Shape> PartitionShape(ShapeContext& c) {
  const Shape row = RowShape(c.input(0), c.input(1), "partitions");
  return std::vector<Shape>(static_cast<size_t>(c.attr<int64_t>("num_partitions")), Shape{-1}.Concat(row));
}

void PartitionGradient(GradientContext& c) {
  Graph& graph = c.graph();
  const Output data = c.input(0), partitions = c.input(1);
  const int count = c.node().num_outputs();
  const Output positions = Reshape(Range(Const(graph, 0), Size(partitions), Const(graph, 1)), ShapeOf(partitions));
  const std::vector<Output> places = DynamicPartition(positions, partitions, count);
  std::vector<Output> gradients;
  for (int i = 0; i < count; ++i) gradients.push_back(c.grad(i));
  c.SetInput(0, Reshape(DynamicStitch(places, gradients), ShapeOf(data)));
}

std::vector<Shape> StitchShape(ShapeContext& c) {
  const int count = c.num_inputs() / 2;
  Shape row = Shape::UnknownRank();
  int64_t largest = -1;
  bool known = true;
  for (int i = 0; i < count; ++i) {
    row = row.MergedWith(RowShape(c.input(count + i), c.input(i), "indices"));
    const auto indices = KnownIntegers(c, i);
    known = known && indices.has_value();
    if (!indices) continue;
    for (const int64_t index : *indices) largest = std::max(largest, index);
  }
  return {Shape{known ? largest + 1 : -1}.Concat(row)};
}

void StitchGradient(GradientContext& c) {
  const int count = c.node().num_inputs() / 2;
  const Output g = c.grad();
  for (int i = 0; i < count; ++i) c.SetInput(count + i, Gather(g, c.input(i)));
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterPartitionOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(
      OpDef("UnsortedSegmentSum")
          .Input("data: T")
          .Input("segment_ids: Tindices")
          .HostInput("num_segments: Tnumsegments")
          .Output("output: T")
          .Attr("T: {bfloat16, half, float, double, uint8, int32, int64}")
          .Attr("Tindices: {int32, int64}")
          .Attr("Tnumsegments: {int32, int64} = DT_INT32")
          .ShapeRule(SegmentShape)
          .Gradient(SegmentGradient)
          .Doc("The sums of the rows of `data` that have the same segment id; negative ids are dropped."));
  // For backends on which the number of different indices need not come to the host.
  registry.Register(
      OpDef("_SumRepeatedRows")
          .Input("indices: Tindices")
          .Input("values: T")
          .Output("rows: Tindices")
          .Output("sums: T")
          .Attr("T: type")
          .Attr("Tindices: {int32, int64}")
          .ShapeRule([](ShapeContext& c) {
            return std::vector<Shape>{c.input(0), c.input(1)};
          })
          .NotDifferentiable("made for updates of variables")
          .Doc(
              "The sums of the rows of `values` that have the same index, each at the first position of its index; the "
              "rows at other positions are zeros, and their indices become the smallest number of the dtype."));
  registry.Register(SortedSegmentOp("SegmentSum", "T: {bfloat16, half, float, double, uint8, int32, int64}")
                        .Gradient([](GradientContext& c) { c.SetInput(0, Gather(c.grad(), c.input(1))); })
                        .Doc("The sums of the rows of `data` that have the same segment id; the ids are sorted."));
  registry.Register(SortedSegmentOp("SegmentMean", "T: {bfloat16, half, float, double}")
                        .Gradient(SegmentMeanGradient)
                        .Doc("The means of the rows of `data` that have the same segment id; the ids are sorted."));
  registry.Register(OpDef("DynamicPartition")
                        .Input("data: T")
                        .Input("partitions: int32")
                        .Output("outputs: num_partitions * T")
                        .Attr("num_partitions: int >= 1")
                        .Attr("T: type")
                        .ShapeRule(PartitionShape)
                        .DataDependentShape()
                        .Gradient(PartitionGradient)
                        .Doc("Rows of `data` sorted into `num_partitions` tensors by the number in `partitions`."));
  registry.Register(OpDef("DynamicStitch")
                        .Input("indices: N * int32")
                        .Input("data: N * T")
                        .Output("merged: T")
                        .Attr("N: int >= 1")
                        .Attr("T: type")
                        .ShapeRule(StitchShape)
                        .DataDependentShape()
                        .Gradient(StitchGradient)
                        .Doc("Rows of all data put where the indices say: merged[indices[m][i]] = data[m][i]."));
}

}  // namespace cohort
