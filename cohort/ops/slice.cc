#include "cohort/ops/slice.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/strided_slice_spec.h"

namespace cohort::ops {
namespace {

AttrMap MaskAttrs(const StridedSliceMasks& masks) {
  return {{"begin_mask", masks.begin_mask},
          {"end_mask", masks.end_mask},
          {"ellipsis_mask", masks.ellipsis_mask},
          {"new_axis_mask", masks.new_axis_mask},
          {"shrink_axis_mask", masks.shrink_axis_mask}};
}

Output PaddingsConst(Graph& graph, const std::vector<std::pair<int64_t, int64_t>>& paddings) {
  std::vector<int32_t> flat;
  for (const auto& [before, after] : paddings) {
    flat.push_back(static_cast<int32_t>(before));
    flat.push_back(static_cast<int32_t>(after));
  }
  return Const(graph, Tensor::FromValues(flat, Shape{static_cast<int64_t>(paddings.size()), 2}));
}

}  // namespace

Output Slice(Output input, const IntList& begin, const IntList& size, const NodeName& name) {
  Graph& graph = input.graph();
  return graph.Op("Slice").Name(name).Input(input).Input(begin.In(graph)).Input(size.In(graph)).Finish1();
}
Output StridedSlice(Output input, const IntList& begin, const IntList& end, const IntList& strides,
                    const StridedSliceMasks& masks, const NodeName& name) {
  Graph& graph = input.graph();
  return graph.Op("StridedSlice")
      .Name(name)
      .Input(input)
      .Input(begin.In(graph))
      .Input(end.In(graph))
      .Input(strides.In(graph))
      .Attrs(MaskAttrs(masks))
      .Finish1();
}
Output Pad(Output input, const std::vector<std::pair<int64_t, int64_t>>& paddings, const NodeName& name) {
  return Op("Pad", {input}, name).Input(PaddingsConst(input.graph(), paddings)).Finish1();
}
Output Pad(Output input, const std::vector<std::pair<int64_t, int64_t>>& paddings, const Operand& value,
           const NodeName& name) {
  return Op("PadV2", {input, PaddingsConst(input.graph(), paddings), value}, name).Finish1();
}

Shape SlicedShape(const Shape& in, const std::vector<int64_t>& begin, const std::vector<int64_t>& size) {
  if (static_cast<int>(begin.size()) != in.rank() || begin.size() != size.size()) {
    throw InvalidArgumentError(StrCat("begin and size must have one element a dimension of ", in, "; got ",
                                      begin.size(), " and ", size.size()));
  }
  Shape result;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t from = begin[static_cast<size_t>(i)], count = size[static_cast<size_t>(i)], dim = in.dim(i);
    const bool begins = from >= 0 && (dim < 0 || from <= dim);
    const int64_t taken = count != -1 ? count : begins && dim >= 0 ? dim - from : -1;
    if (!begins || count < -1 || (dim >= 0 && taken > dim - from)) {
      throw InvalidArgumentError(StrCat("slice of ", count, " from ", from, " leaves dimension ", i, " of shape ", in));
    }
    result.AddDim(taken);
  }
  return result;
}

Shape PaddedShape(const Shape& in, const std::vector<int64_t>& paddings) {
  if (static_cast<int>(paddings.size()) != 2 * in.rank()) {
    throw InvalidArgumentError(
        StrCat("paddings must be [", in.rank(), ",2] for shape ", in, "; got ", paddings.size(), " elements"));
  }
  Shape result;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t before = paddings[static_cast<size_t>(2 * i)], after = paddings[static_cast<size_t>(2 * i + 1)];
    if (before < 0 || after < 0) {
      throw InvalidArgumentError(
          StrCat("paddings must not be negative; got ", before, " and ", after, " for dimension ", i));
    }
    int64_t padded = 0;
    if (__builtin_add_overflow(before, std::max<int64_t>(in.dim(i), 0), &padded) ||
        __builtin_add_overflow(padded, after, &padded)) {
      throw InvalidArgumentError(
          StrCat("paddings of ", before, " and ", after, " for dimension ", i, " are too large"));
    }
    result.AddDim(in.dim(i) < 0 ? -1 : padded);
  }
  return result;
}

namespace {

std::vector<Shape> SliceShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  const auto begin = KnownIntegers(c, 1), size = KnownIntegers(c, 2);
  if (begin && size && in.has_rank()) return {SlicedShape(in, *begin, *size)};
  if (size) {
    Shape result;
    for (const int64_t count : *size) result.AddDim(count);  // -1: what follows an unknown begin
    return {result};
  }
  const Shape partial = c.input_as_shape(2);
  if (partial.has_rank() && in.has_rank() && partial.rank() != in.rank()) {
    throw InvalidArgumentError(StrCat("size must have one element a dimension of ", in, "; got ", partial.rank()));
  }
  return {partial.has_rank() ? partial : in.has_rank() ? Shape::UnknownDims(in.rank()) : in};
}

StridedSliceMasks MasksOf(const ShapeContext& c) {
  return {c.attr<int64_t>("begin_mask"), c.attr<int64_t>("end_mask"), c.attr<int64_t>("ellipsis_mask"),
          c.attr<int64_t>("new_axis_mask"), c.attr<int64_t>("shrink_axis_mask")};
}

std::vector<Shape> StridedSliceShape(ShapeContext& c) {
  const auto strides = KnownIntegers(c, 3);
  if (!strides || !c.input(0).has_rank()) return UnknownShapes(1);
  return {ResolveStridedSlice(c.input(0), KnownIntegers(c, 1), KnownIntegers(c, 2), *strides, MasksOf(c)).output};
}

std::vector<Shape> PadShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  c.WithRank(1, 2);
  const auto paddings = KnownIntegers(c, 1);
  if (!in.has_rank()) return UnknownShapes(1);
  if (!paddings) return {Shape::UnknownDims(in.rank())};
  return {PaddedShape(in, *paddings)};
}

// Returns how many elements a slice leaves out at both ends of each dimension, if the graph knows it. A dimension that
// is taken as a whole may be unknown.
std::optional<std::vector<std::pair<int64_t, int64_t>>> LeftOut(const Node& slice) {
  const Shape &in = slice.input(0).shape(), &out = slice.output_shape(0);
  const Node &begin = *slice.input(1).node, &size = *slice.input(2).node;
  if (!in.has_rank() || !out.has_rank() || begin.op_name() != "Const" || size.op_name() != "Const") {
    return std::nullopt;
  }
  const std::vector<int64_t> from = IntegerValues(begin.attr<Tensor>("value"));
  const std::vector<int64_t> sizes = IntegerValues(size.attr<Tensor>("value"));
  std::vector<std::pair<int64_t, int64_t>> ends;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t before = from[static_cast<size_t>(i)];
    if (before == 0 && sizes[static_cast<size_t>(i)] == -1) {
      ends.emplace_back(0, 0);
    } else if (in.dim(i) >= 0 && out.dim(i) >= 0) {
      ends.emplace_back(before, in.dim(i) - before - out.dim(i));
    } else {
      return std::nullopt;
    }
  }
  return ends;
}

// The gradient of a slice is the incoming one with zeros around it. If their numbers are known, the step of a GPU can
// be recorded, because nothing has to come to the host.
void SliceGradient(GradientContext& c) {
  const Output g = c.grad();
  if (const auto ends = LeftOut(c.node())) {
    c.SetInput(0, Pad(g, *ends));
    return;
  }
  Graph& graph = c.graph();
  const DType index = c.input(1).dtype();
  const Output end = graph.Op("Sub")
                         .Input(graph.Op("Sub").Input(ShapeOf(c.input(0), index)).Input(c.input(1)).Finish1())
                         .Input(ShapeOf(g, index))
                         .Finish1();
  const Output paddings = graph.Op("Pack").Inputs({c.input(1), end}).Attr("axis", 1).Finish1();
  c.SetInput(0, graph.Op("Pad").Input(g).Input(paddings).Finish1());
}

AttrMap MasksOf(const Node& node) {
  AttrMap masks;
  for (const char* name : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    masks[name] = node.attr<int64_t>(name);
  }
  return masks;
}

void StridedSliceGradient(GradientContext& c) {
  c.SetInput(0, c.graph()
                    .Op("StridedSliceGrad")
                    .Input(ShapeOf(c.input(0), c.input(1).dtype()))
                    .Input(c.input(1))
                    .Input(c.input(2))
                    .Input(c.input(3))
                    .Input(c.grad())
                    .Attrs(MasksOf(c.node()))
                    .Finish1());
}

void StridedSliceGradGradient(GradientContext& c) {
  c.SetInput(4, c.graph()
                    .Op("StridedSlice")
                    .Input(c.grad())
                    .Input(c.input(1))
                    .Input(c.input(2))
                    .Input(c.input(3))
                    .Attrs(MasksOf(c.node()))
                    .Finish1());
}

// Begin and size of the slice that a padding surrounds.
struct InnerSlice {
  std::vector<int64_t> begin, size;
};

// Returns the slice if the graph knows it. A dimension to which nothing is added behind may be unknown.
std::optional<InnerSlice> InnerSliceOf(const Node& pad) {
  const Shape& in = pad.input(0).shape();
  const Node& paddings = *pad.input(1).node;
  if (!in.has_rank() || paddings.op_name() != "Const") return std::nullopt;
  const std::vector<int64_t> pairs = IntegerValues(paddings.attr<Tensor>("value"));
  InnerSlice slice;
  for (int i = 0; i < in.rank(); ++i) {
    const auto at = static_cast<size_t>(2 * i);
    slice.begin.push_back(pairs[at]);
    slice.size.push_back(pairs[at + 1] == 0 ? -1 : in.dim(i));
    if (pairs[at + 1] != 0 && in.dim(i) < 0) return std::nullopt;
  }
  return slice;
}

// What flows to the elements that were not padded.
Output InnerGradient(GradientContext& c) {
  Graph& graph = c.graph();
  if (const auto slice = InnerSliceOf(c.node())) return Slice(c.grad(), slice->begin, slice->size);
  const Output column = graph.Op("Pack").Inputs({Rank(c.input(0)), Const(graph, 1)}).Finish1();
  const Output begin = Cast(Reshape(Slice(c.input(1), IntVector(graph, {0, 0}), column), {-1}), DType::kInt32);
  return Slice(c.grad(), begin, ShapeOf(c.input(0)));
}

void PadGradient(GradientContext& c) { c.SetInput(0, InnerGradient(c)); }

Output Total(Output x) {
  Graph& graph = x.graph();
  return graph.Op("Sum").Input(x).Input(Range(Const(graph, 0), Rank(x), Const(graph, 1))).Finish1();
}

void PadV2Gradient(GradientContext& c) {
  const Output inner = InnerGradient(c);
  c.SetInput(0, inner);
  c.SetInput(2, c.graph().Op("Sub").Input(Total(c.grad())).Input(Total(inner)).Finish1());
}

OpDef WithMasks(OpDef&& def) {
  return std::move(def)
      .Attr("begin_mask: int = 0")
      .Attr("end_mask: int = 0")
      .Attr("ellipsis_mask: int = 0")
      .Attr("new_axis_mask: int = 0")
      .Attr("shrink_axis_mask: int = 0");
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterSliceOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("Slice")
                        .Input("input: T")
                        .HostInput("begin: Index")
                        .HostInput("size: Index")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("Index: {int32, int64}")
                        .ShapeRule(SliceShape)
                        .Gradient(SliceGradient)
                        .Doc("`size` elements from `begin` along each dimension; -1 takes all that follow."));
  registry.Register(
      WithMasks(OpDef("StridedSlice")
                    .Input("input: T")
                    .HostInput("begin: Index")
                    .HostInput("end: Index")
                    .HostInput("strides: Index")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("Index: {int32, int64}"))
          .ShapeRule(StridedSliceShape)
          .Gradient(StridedSliceGradient)
          .Doc("input[begin:end:strides, ...] with Python's meaning; the masks are bit sets by position."));
  registry.Register(
      WithMasks(OpDef("StridedSliceGrad")
                    .HostInput("shape: Index")
                    .HostInput("begin: Index")
                    .HostInput("end: Index")
                    .HostInput("strides: Index")
                    .Input("dy: T")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("Index: {int32, int64}"))
          .ShapeRule([](ShapeContext& c) { return std::vector<Shape>{c.input_as_shape(0)}; })
          .Gradient(StridedSliceGradGradient)
          .Doc("Zeros of `shape` with dy where StridedSlice with the same arguments would take elements."));
  registry.Register(OpDef("Pad")
                        .Input("input: T")
                        .HostInput("paddings: Tpaddings")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("Tpaddings: {int32, int64} = DT_INT32")
                        .ShapeRule(PadShape)
                        .Gradient(PadGradient)
                        .Doc("The input with paddings[i][0] zeros before and paddings[i][1] after along dimension i."));
  registry.Register(OpDef("PadV2")
                        .Input("input: T")
                        .HostInput("paddings: Tpaddings")
                        .Input("constant_values: T")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("Tpaddings: {int32, int64} = DT_INT32")
                        .ShapeRule(PadShape)
                        .Gradient(PadV2Gradient)
                        .Doc("The input with the scalar `constant_values` around it."));
}

}  // namespace cohort
