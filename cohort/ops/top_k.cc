#include "cohort/ops/top_k.h"

#include <numeric>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/dims.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/unary.h"

namespace cohort::ops {

TopKResult TopK(Output input, const Operand& k, bool sorted, DType index_type, const NodeName& name) {
  Node* node = Op("TopKV2", {input, k}, name).Attr("sorted", sorted).Attr("index_type", index_type).Finish();
  return {node->output(0), node->output(1)};
}

namespace {

bool IsDescending(const std::string& direction) {
  if (direction == "DESCENDING") return true;
  if (direction == "ASCENDING") return false;
  throw InvalidArgumentError(
      StrCat("[ops/top_k] expected direction \"ASCENDING\" or \"DESCENDING\"; got \"", direction, "\""));
}

struct Order {
  Output values;
  Output positions;
};

// Orders x along its last axis. Rising order is the falling order of the reversed row, read from its end: so equal
// elements keep their order, and NaN comes last.
Order OrderedRows(Output x, bool descending) {
  const Output n = DimValue(x, -1);
  if (descending) {
    const TopKResult top = TopK(x, n);
    return {top.values, top.indices};
  }
  const TopKResult top = TopK(Reverse(x, {-1}), n);
  return {Reverse(top.values, {-1}), Sub(n - 1, Reverse(top.indices, {-1}))};
}

// Orders x along `axis`.
Order Ordered(Output x, int axis, bool descending) {
  std::vector<int64_t> perm;  // swaps the axis and the last one; empty if it is the last one
  if (axis != -1) {
    const int rank = x.shape().rank();
    if (rank < 0) {
      throw InvalidArgumentError(StrCat("[ops/top_k] expected axis -1 for values of unknown rank; got ", axis));
    }
    const int at = NormalizeAxis(axis, rank);
    perm.resize(static_cast<size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[static_cast<size_t>(at)], perm.back());
    if (at == rank - 1) perm.clear();
  }
  if (!perm.empty()) x = Transpose(x, perm);
  const Order order = OrderedRows(x, descending);
  if (perm.empty()) return order;
  return {Transpose(order.values, perm), Transpose(order.positions, perm)};
}

std::vector<Shape> TopKShape(ShapeContext& c) {
  const Shape& in = c.WithRankAtLeast(0, 1);
  const auto k = KnownInteger(c, 1, "k");
  if (k && *k < 0) throw InvalidArgumentError(StrCat("k must not be negative; got ", *k));
  if (!in.has_rank()) return UnknownShapes(2);
  const int64_t n = in.dim(in.rank() - 1);
  if (k && n >= 0 && *k > n) {
    throw InvalidArgumentError(StrCat("input must have at least k = ", *k, " columns; got shape ", in));
  }
  const Shape out = in.Sub(0, in.rank() - 1).Concat(Shape{k.value_or(-1)});
  return {out, out};
}

// The gradient of a value goes to the position of the flat input from which it came.
void TopKGradient(GradientContext& c) {
  Graph& graph = c.graph();
  const Output x = c.input(0), indices = c.output(1);
  const DType index = indices.dtype();
  const Output n = DimValue(x, -1), size = Size(x);
  // The rows of the indices as a column [rows, 1] of their first positions.
  const Output k = Cast(Reshape(c.input(1), std::vector<int64_t>{}), DType::kInt32);
  const Output rows = FloorDiv(size, Maximum(n, 1));
  const Output starts = Mul(Range(Const(graph, 0), rows, Const(graph, 1)), n);
  const Output flat = Add(Reshape(indices, Pack({rows, k})), Cast(ExpandDims(starts, 1), index));
  const Output sums = UnsortedSegmentSum(Reshape(c.grad(), {-1}), Reshape(flat, {-1}), size);
  c.SetInput(0, Reshape(sums, ShapeValue(x)));
}

}  // namespace

Output Sort(Output values, int axis, const std::string& direction, const NodeName& name) {
  const bool descending = IsDescending(direction);
  const CallSiteScope site(values.graph(), name.site());
  return Identity(Ordered(values, axis, descending).values, name);
}

Output ArgSort(Output values, int axis, const std::string& direction, const NodeName& name) {
  const bool descending = IsDescending(direction);
  const CallSiteScope site(values.graph(), name.site());
  return Identity(Ordered(values, axis, descending).positions, name);
}

}  // namespace cohort::ops

namespace cohort {

void RegisterTopKOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("TopKV2")
                        .Input("input: T")
                        .HostInput("k: Tk")
                        .Output("values: T")
                        .Output("indices: index_type")
                        .Attr("sorted: bool = true")
                        .Attr("T: {bfloat16, half, float, double, uint8, int32, int64}")
                        .Attr("Tk: {int32, int64} = DT_INT32")
                        .Attr("index_type: {int32, int64} = DT_INT32")
                        .ShapeRule(TopKShape)
                        .Gradient(TopKGradient)
                        .Doc("The k largest elements along the last axis in falling order, and their positions. Of "
                             "equal ones that with the lower position comes first."));
}

}  // namespace cohort
