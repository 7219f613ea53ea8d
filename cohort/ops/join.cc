#include "cohort/ops/join.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/broadcast_gradient.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/slice.h"

namespace cohort::ops {
namespace {

std::vector<Output> OutputsOf(Node* node) {
  std::vector<Output> outputs;
  for (int i = 0; i < node->num_outputs(); ++i) outputs.push_back(node->output(i));
  return outputs;
}

Graph& GraphOf(const char* op, const std::vector<Output>& values) {
  if (values.empty()) throw InvalidArgumentError(StrCat("[ops] ", op, " needs at least one value"));
  return values[0].graph();
}

}  // namespace

Output Concat(const std::vector<Output>& values, int axis, const NodeName& name) {
  Graph& graph = GraphOf("Concat", values);
  if (values.size() == 1) return values[0];
  return graph.Op("ConcatV2").Name(name).Inputs(values).Input(Const(graph, axis)).Finish1();
}
std::vector<Output> Split(Output value, int axis, int num_split, const NodeName& name) {
  Graph& graph = value.graph();
  return OutputsOf(
      graph.Op("Split").Name(name).Input(Const(graph, axis)).Input(value).Attr("num_split", num_split).Finish());
}
std::vector<Output> SplitV(Output value, const std::vector<int64_t>& sizes, int axis, const NodeName& name) {
  Graph& graph = value.graph();
  return OutputsOf(graph.Op("SplitV")
                       .Name(name)
                       .Input(value)
                       .Input(IntVector(graph, sizes))
                       .Input(Const(graph, axis))
                       .Attr("num_split", static_cast<int64_t>(sizes.size()))
                       .Finish());
}
Output Pack(const std::vector<Output>& values, int axis, const NodeName& name) {
  return GraphOf("Pack", values).Op("Pack").Name(name).Inputs(values).Attr("axis", axis).Finish1();
}
std::vector<Output> Unpack(Output value, int num, int axis, const NodeName& name) {
  return OutputsOf(Op("Unpack", {value}, name).Attr("num", num).Attr("axis", axis).Finish());
}
Output Tile(Output input, const IntList& multiples, const NodeName& name) {
  return Op("Tile", {input}, name).Input(multiples.In(input.graph())).Finish1();
}

namespace {

std::vector<Shape> ConcatShape(ShapeContext& c) {
  const int count = c.num_inputs() - 1;
  const auto axis = KnownInteger(c, count, "concat axis");
  int rank = -1;
  for (int i = 0; i < count && rank < 0; ++i) rank = c.input(i).rank();
  if (rank < 0) return UnknownShapes(1);
  if (rank == 0) throw InvalidArgumentError("scalars cannot be concatenated; use Pack");
  if (!axis) return {Shape::UnknownDims(rank)};
  const int at = NormalizeAxis(*axis, rank, "concat axis");
  Shape result = Shape::UnknownDims(rank);
  int64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    Shape part = c.WithRank(i, rank);
    sum = sum < 0 || part.dim(at) < 0 ? -1 : sum + part.dim(at);
    part.set_dim(at, -1);
    result = result.MergedWith(part);
  }
  result.set_dim(at, sum);
  return {result};
}

std::vector<Shape> ConcatOffsetShape(ShapeContext& c) {
  Shape shape = Shape::UnknownRank();
  for (int i = 1; i < c.num_inputs(); ++i) shape = shape.MergedWith(c.WithRank(i, 1));
  return std::vector<Shape>(static_cast<size_t>(c.num_inputs() - 1), shape);
}

std::vector<Shape> SplitShape(ShapeContext& c) {
  const int64_t parts = c.attr<int64_t>("num_split");
  const Shape& value = c.input(1);
  const auto axis = KnownInteger(c, 0, "split_dim");
  Shape part = value.has_rank() ? Shape::UnknownDims(value.rank()) : value;
  if (axis && value.has_rank()) {
    const int at = NormalizeAxis(*axis, value.rank(), "split axis");
    part = value;
    if (value.dim(at) >= 0) {
      if (value.dim(at) % parts != 0) {
        throw InvalidArgumentError(
            StrCat("dimension ", at, " of shape ", value, " does not divide into ", parts, " equal parts"));
      }
      part.set_dim(at, value.dim(at) / parts);
    }
  }
  return std::vector<Shape>(static_cast<size_t>(parts), part);
}

std::vector<Shape> SplitVShape(ShapeContext& c) {
  const size_t parts = static_cast<size_t>(c.attr<int64_t>("num_split"));
  const Shape& value = c.input(0);
  const auto axis = KnownInteger(c, 2, "split_dim");
  const auto sizes = KnownIntegers(c, 1);
  if (sizes && sizes->size() != parts) {
    throw InvalidArgumentError(StrCat("size_splits has ", sizes->size(), " elements for num_split = ", parts));
  }
  if (!value.has_rank()) return UnknownShapes(static_cast<int>(parts));
  if (!axis) return std::vector<Shape>(parts, Shape::UnknownDims(value.rank()));
  const int at = NormalizeAxis(*axis, value.rank(), "split axis");
  std::vector<Shape> shapes(parts, value);
  for (Shape& shape : shapes) shape.set_dim(at, -1);
  if (!sizes) return shapes;
  const std::vector<int64_t> resolved = value.dim(at) >= 0 ? ResolveSplit(*sizes, value.dim(at)) : *sizes;
  for (size_t i = 0; i < parts; ++i) shapes[i].set_dim(at, resolved[i]);
  return shapes;
}

std::vector<Shape> PackShape(ShapeContext& c) {
  Shape part = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) part = part.MergedWith(c.input(i));
  if (!part.has_rank()) return {part};
  const int axis = NormalizeAxis(c.attr<int64_t>("axis"), part.rank() + 1);
  return {part.Sub(0, axis).Concat(Shape{c.num_inputs()}).Concat(part.Sub(axis, part.rank()))};
}

std::vector<Shape> UnpackShape(ShapeContext& c) {
  const int64_t num = c.attr<int64_t>("num");
  const Shape& value = c.input(0);
  if (!value.has_rank()) return UnknownShapes(static_cast<int>(num));
  const int axis = NormalizeAxis(c.attr<int64_t>("axis"), value.rank());
  if (value.dim(axis) >= 0 && value.dim(axis) != num) {
    throw InvalidArgumentError(StrCat("dimension ", axis, " of shape ", value, " must be num = ", num));
  }
  return std::vector<Shape>(static_cast<size_t>(num), value.Sub(0, axis).Concat(value.Sub(axis + 1, value.rank())));
}

std::vector<Shape> TileShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  const Shape multiples = c.input_as_shape(1);
  if (!in.has_rank()) return {multiples.has_rank() ? Shape::UnknownDims(multiples.rank()) : in};
  if (!multiples.has_rank()) return {Shape::UnknownDims(in.rank())};
  if (multiples.rank() != in.rank()) {
    throw InvalidArgumentError(
        StrCat("multiples must have one element a dimension of ", in, "; got ", multiples.rank()));
  }
  Shape result = Shape::UnknownDims(in.rank());
  for (int i = 0; i < in.rank(); ++i) {
    int64_t dim = Shape::kUnknownDim;
    if (in.dim(i) >= 0 && multiples.dim(i) >= 0 && __builtin_mul_overflow(in.dim(i), multiples.dim(i), &dim)) {
      throw InvalidArgumentError(StrCat("multiples ", multiples, " of ", in, " are too large"));
    }
    result.set_dim(i, dim);
  }
  return {result};
}

void ConcatGradient(GradientContext& c) {
  const int count = c.node().num_inputs() - 1;
  const Output g = c.grad(), axis = c.input(count);
  Graph& graph = c.graph();
  const Node& axis_node = *axis.node;
  std::vector<int64_t> sizes;
  if (axis_node.op_name() == "Const") {
    for (int i = 0; i < count; ++i) {
      const Shape& shape = c.input(i).shape();
      if (!shape.has_rank()) break;
      const int at = NormalizeAxis(IntegerScalar(axis_node.attr<Tensor>("value"), "axis"), shape.rank());
      if (shape.dim(at) < 0) break;
      sizes.push_back(shape.dim(at));
    }
  }
  if (static_cast<int>(sizes.size()) == count) {
    Node* split = graph.Op("SplitV")
                      .Input(g)
                      .Input(IntVector(graph, sizes))
                      .Input(Cast(axis, DType::kInt32))
                      .Attr("num_split", count)
                      .Finish();
    for (int i = 0; i < count; ++i) c.SetInput(i, split->output(i));
    return;
  }
  std::vector<Output> shapes;
  for (int i = 0; i < count; ++i) shapes.push_back(ShapeOf(c.input(i)));
  const Output at = FloorMod(Cast(axis, DType::kInt32), Rank(g));
  Node* offsets = graph.Op("ConcatOffset").Input(at).Inputs(shapes).Finish();
  for (int i = 0; i < count; ++i) {
    c.SetInput(i, Slice(g, offsets->output(i), shapes[static_cast<size_t>(i)]));
  }
}

std::vector<Output> AllGradients(GradientContext& c) {
  std::vector<Output> gradients;
  for (int i = 0; i < c.node().num_outputs(); ++i) gradients.push_back(c.grad(i));
  return gradients;
}

Output ConcatAlong(Graph& graph, const std::vector<Output>& values, Output axis) {
  if (values.size() == 1) return values[0];
  return graph.Op("ConcatV2").Inputs(values).Input(axis).Finish1();
}

// Returns [multiple 0, dimension 0, multiple 1, dimension 1, ...] of a Tile if the graph knows them. One dimension may
// be unknown (-1).
std::optional<std::vector<int64_t>> InterleavedDims(const Node& tile) {
  const Shape& in = tile.input(0).shape();
  const Node& multiples = *tile.input(1).node;
  if (!in.has_rank() || multiples.op_name() != "Const") return std::nullopt;
  const std::vector<int64_t> times = IntegerValues(multiples.attr<Tensor>("value"));
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) dims.insert(dims.end(), {times[static_cast<size_t>(i)], in.dim(i)});
  const auto unknown = std::count(dims.begin(), dims.end(), -1), none = std::count(dims.begin(), dims.end(), 0);
  // Without elements, an unknown dimension does not follow from the number of elements.
  if (unknown > 1 || (unknown == 1 && none > 0)) return std::nullopt;
  return dims;
}

void TileGradient(GradientContext& c) {
  // [a*m, b*n] -> [m, a, n, b], summed over the multiples.
  if (const auto dims = InterleavedDims(c.node())) {
    // The step of a GPU can be recorded, because no shape has to come to the host.
    std::vector<int64_t> axes;
    for (size_t i = 0; i < dims->size(); i += 2) axes.push_back(static_cast<int64_t>(i));
    c.SetInput(0, Sum(Reshape(c.grad(), *dims), axes));
    return;
  }
  Graph& graph = c.graph();
  const Output shape = ShapeOf(c.input(0));
  const Output multiples = Cast(c.input(1), DType::kInt32);
  const Output interleaved = Reshape(Pack({multiples, shape}, 1), {-1});
  const Output axes = Range(Const(graph, 0), Size(interleaved), Const(graph, 2));
  c.SetInput(0, ReshapeLike(Sum(Reshape(c.grad(), interleaved), axes), c.input(0)));
}

void RegisterSplits(OpRegistry& registry) {
  registry.Register(
      OpDef("Split")
          .HostInput("split_dim: int32")
          .Input("value: T")
          .Output("output: num_split * T")
          .Attr("num_split: int >= 1")
          .Attr("T: type")
          .ShapeRule(SplitShape)
          .Gradient([](GradientContext& c) { c.SetInput(1, ConcatAlong(c.graph(), AllGradients(c), c.input(0))); })
          .Doc("`num_split` equal parts of the value along `split_dim`."));
  registry.Register(
      OpDef("SplitV")
          .Input("value: T")
          .HostInput("size_splits: Tlen")
          .HostInput("split_dim: int32")
          .Output("output: num_split * T")
          .Attr("num_split: int >= 1")
          .Attr("T: type")
          .Attr("Tlen: {int32, int64} = DT_INT64")
          .ShapeRule(SplitVShape)
          .Gradient([](GradientContext& c) { c.SetInput(0, ConcatAlong(c.graph(), AllGradients(c), c.input(2))); })
          .Doc("Parts of the given sizes along `split_dim`; one size may be -1."));
  registry.Register(OpDef("Unpack")
                        .Input("value: T")
                        .Output("output: num * T")
                        .Attr("num: int >= 0")
                        .Attr("T: type")
                        .Attr("axis: int = 0")
                        .ShapeRule(UnpackShape)
                        .Gradient([](GradientContext& c) {
                          if (c.node().num_outputs() == 0) return;
                          c.SetInput(0, Pack(AllGradients(c), static_cast<int>(c.attr<int64_t>("axis"))));
                        })
                        .Doc("The `num` slices of the value along `axis`, which goes away."));
}

void RegisterJoins(OpRegistry& registry) {
  registry.Register(OpDef("ConcatV2")
                        .Input("values: N * T")
                        .HostInput("axis: Tidx")
                        .Output("output: T")
                        .Attr("N: int >= 2")
                        .Attr("T: type")
                        .Attr("Tidx: {int32, int64} = DT_INT32")
                        .ShapeRule(ConcatShape)
                        .Gradient(ConcatGradient)
                        .Doc("The values one after another along `axis`."));
  registry.Register(OpDef("ConcatOffset")
                        .HostInput("concat_dim: int32")
                        .HostInput("shape: N * shape_type")
                        .HostOutput("offset: N * shape_type")
                        .Attr("N: int >= 2")
                        .Attr("shape_type: {int32, int64} = DT_INT32")
                        .ShapeRule(ConcatOffsetShape)
                        .NotDifferentiable("positions")
                        .Doc("Where tensors of the given shapes begin in their concatenation along `concat_dim`."));
  registry.Register(OpDef("Pack")
                        .Input("values: N * T")
                        .Output("output: T")
                        .Attr("N: int >= 1")
                        .Attr("T: type")
                        .Attr("axis: int = 0")
                        .ShapeRule(PackShape)
                        .Gradient([](GradientContext& c) {
                          const std::vector<Output> parts =
                              Unpack(c.grad(), c.node().num_inputs(), static_cast<int>(c.attr<int64_t>("axis")));
                          for (int i = 0; i < c.node().num_inputs(); ++i) c.SetInput(i, parts[static_cast<size_t>(i)]);
                        })
                        .Doc("Tensors of one shape along a new dimension `axis`."));
  registry.Register(OpDef("Tile")
                        .Input("input: T")
                        .HostInput("multiples: Tmultiples")
                        .Output("output: T")
                        .Attr("T: type")
                        .Attr("Tmultiples: {int32, int64} = DT_INT32")
                        .ShapeRule(TileShape)
                        .Gradient(TileGradient)
                        .Doc("The input repeated multiples[i] times along dimension i."));
}

}  // namespace

std::vector<int64_t> ResolveSplit(std::vector<int64_t> sizes, int64_t total) {
  int64_t sum = 0;
  int64_t* rest = nullptr;
  for (int64_t& size : sizes) {
    if (size > total - sum) {  // so that the sum cannot overflow
      throw InvalidArgumentError(StrCat("sizes ", StrJoin(sizes, ","), " do not add up to the dimension ", total));
    }
    if (size >= 0) {
      sum += size;
    } else if (size == -1 && rest == nullptr) {
      rest = &size;
    } else {
      throw InvalidArgumentError(StrCat("sizes must not be negative, but for one -1; got ", StrJoin(sizes, ",")));
    }
  }
  if (rest != nullptr) *rest = total - sum;
  if (rest == nullptr && sum != total) {
    throw InvalidArgumentError(StrCat("sizes ", StrJoin(sizes, ","), " do not add up to the dimension ", total));
  }
  return sizes;
}

}  // namespace cohort::ops

namespace cohort {

void RegisterJoinOps(OpRegistry& registry) {
  ops::RegisterSplits(registry);
  ops::RegisterJoins(registry);
}

}  // namespace cohort
