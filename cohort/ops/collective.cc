#include "cohort/ops/collective.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

constexpr char kNumbers[] = "T: {bfloat16, float32, float64, int32, int64, uint8}";
constexpr char kMoved[] = "T: {bool, bfloat16, float32, float64, int32, int64, uint8}";
// A gradient's instance_key is that of its op plus a multiple of this, the next one for each gradient of one op.
constexpr int64_t kGradient = int64_t{1} << 32;
// What TensorFlow's ops of these names lack; it passes over attributes that begin with '_'.
constexpr char kMembers[] = "_members";
constexpr char kGeneration[] = "_generation";
constexpr char kProgressLimit[] = "_progress_limit_ms";
constexpr char kGradientOf[] = "_gradient_of";

OpDef WithKeys(OpDef def) {
  return std::move(def)
      .Attr("group_size: int >= 1")
      .Attr("group_key: int")
      .Attr("instance_key: int")
      .Attr("communication_hint: string = 'auto'")
      .Attr("timeout_seconds: float = 0")
      .Stateful();
}

// The longest time of a collective, from the attribute timeout_seconds.
std::chrono::milliseconds TimeoutOf(const Node& node) {
  const float seconds = node.attr<float>("timeout_seconds");
  if (!(seconds >= 0) || std::isinf(seconds)) {
    throw InvalidArgumentError(StrCat("[collective] expected timeout_seconds of at least 0 (0: no limit); got ",
                                      seconds, " in ", node.Describe()));
  }
  const double longest = static_cast<double>(kLongestLimit.count());
  return std::chrono::milliseconds(std::llround(std::min(1000.0 * static_cast<double>(seconds), longest)));
}

NodeBuilder&& WithKeys(NodeBuilder&& builder, const ops::CollectiveKeys& keys) {
  const auto members = static_cast<int64_t>(keys.members.size());
  const int64_t size = keys.group_size > 0 ? keys.group_size : std::max<int64_t>(1, members);
  if (members > 0 && members != size) {
    throw InvalidArgumentError(StrCat("[collective] expected the names of ", size, " members (group_size) of group ",
                                      keys.group_key, "; got ", members));
  }
  if (keys.timeout.count() < 0) {
    throw InvalidArgumentError(StrCat("[collective] expected a timeout of at least 0 (0: no limit) for group ",
                                      keys.group_key, "; got ", keys.timeout.count(), " ms"));
  }
  if (keys.progress_limit && keys.progress_limit->count() < 0) {
    throw InvalidArgumentError(StrCat("[collective] expected a progress_limit of at least 0 (0: no limit) for group ",
                                      keys.group_key, "; got ", keys.progress_limit->count(), " ms"));
  }
  if (keys.progress_limit) builder.Attr(kProgressLimit, static_cast<int64_t>(keys.progress_limit->count()));
  if (members > 0) builder.Attr(kMembers, keys.members).Attr(kGeneration, keys.generation);
  builder.Attr("group_size", size)
      .Attr("group_key", keys.group_key)
      .Attr("instance_key", keys.instance_key)
      .Attr("timeout_seconds", std::chrono::duration<float>(keys.timeout).count())
      .Attr("communication_hint", keys.communication_hint);
  return std::move(builder);
}

NodeBuilder Reduction(const char* op, Output input, const ops::CollectiveKeys& keys, const std::string& merge_op,
                      const std::string& final_op) {
  NodeBuilder builder = input.graph().Op(op);
  builder.Input(input).Attr("merge_op", merge_op).Attr("final_op", final_op);
  return WithKeys(std::move(builder), keys);
}

void CheckReduction(const ShapeContext& c) {
  if (c.attr<std::string>("final_op") == "Div" && c.attr<std::string>("merge_op") != "Add") {
    throw InvalidArgumentError(
        StrCat("[collective] final_op Div goes with merge_op Add; got ", c.attr<std::string>("merge_op")));
  }
}

std::vector<Shape> ReduceShape(ShapeContext& c) {
  CheckReduction(c);
  return ops::UnchangedShape(c);
}

std::vector<Shape> GatherShape(ShapeContext& c) {
  Shape shape = c.input(0);
  if (!shape.has_rank()) return {shape};
  if (shape.rank() == 0) shape = Shape{1};
  if (shape.dim(0) >= 0) shape.set_dim(0, shape.dim(0) * c.attr<int64_t>("group_size"));
  return {shape};
}

std::vector<Shape> ScatterShape(ShapeContext& c) {
  CheckReduction(c);
  Shape shape = c.WithRankAtLeast(0, 1);
  if (!shape.has_rank() || shape.dim(0) < 0) return {shape};
  const int64_t size = c.attr<int64_t>("group_size");
  if (shape.dim(0) % size != 0) {
    throw InvalidArgumentError(
        StrCat("[collective] expected rows that ", size, " members can share equally; got the shape ", shape));
  }
  shape.set_dim(0, shape.dim(0) / size);
  return {shape};
}

std::vector<Shape> GivenShape(ShapeContext& c) { return {c.attr<Shape>("shape")}; }

// Members' gradients of one op get the same number, in whatever order they are added.
void ReduceGradient(GradientContext& c) {
  const Node& node = c.node();
  if (c.attr<std::string>("merge_op") != "Add") {
    throw UnimplementedError(StrCat("[collective] the gradient of CollectiveReduce is there for merge_op Add; got ",
                                    c.attr<std::string>("merge_op"), " in ", node.Describe()));
  }
  int64_t number = 1;
  for (const Node* other : c.graph().nodes()) {
    if (other->has_attr(kGradientOf) && other->attr<std::string>(kGradientOf) == node.name()) ++number;
  }
  ops::CollectiveKeys keys = ops::KeysOf(node);
  keys.instance_key += number * kGradient;
  c.SetInput(0, Reduction("CollectiveReduce", c.grad(0), keys, "Add", c.attr<std::string>("final_op"))
                    .Attr(kGradientOf, node.name())
                    .Finish1());
}

}  // namespace

void RegisterCollectiveOps(OpRegistry& registry) {
  const auto reduces = [](OpDef def) {
    return WithKeys(std::move(def))
        .Input("input: T")
        .Output("data: T")
        .Attr(kNumbers)
        .Attr("merge_op: {'Min', 'Max', 'Mul', 'Add'}")
        .Attr("final_op: {'Id', 'Div'}");
  };
  registry.Register(reduces(OpDef("CollectiveReduce"))
                        .Attr("subdiv_offsets: list(int) = []")
                        .Attr("wait_for: list(int) = []")
                        .ShapeRule(ReduceShape)
                        .Gradient(ReduceGradient)
                        .Doc("The reduction of the inputs of all members of a group, the same at each. subdiv_offsets "
                             "and wait_for have no effect."));
  registry.Register(reduces(OpDef("CollectiveReduceScatter"))
                        .ShapeRule(ScatterShape)
                        .NotDifferentiable("its gradient would gather what members computed on their own")
                        .Doc("Of the reduction of the inputs of all members the rows that are this one's share."));
  registry.Register(WithKeys(OpDef("CollectiveGather"))
                        .Input("input: T")
                        .Output("data: T")
                        .Attr(kMoved)
                        .Attr("shape: shape")
                        .ShapeRule(GatherShape)
                        .NotDifferentiable("its gradient would be a member's share of a sum over the group")
                        .Doc("The inputs of all members of a group, one after another along axis 0."));
  registry.Register(WithKeys(OpDef("CollectiveBcastSend"))
                        .Input("input: T")
                        .Output("data: T")
                        .Attr(kMoved)
                        .Attr("shape: shape")
                        .ShapeRule(ops::UnchangedShape)
                        .NotDifferentiable("hands out initial values")
                        .Doc("Sends `input` to all members of a group; only the one of rank 0 may."));
  registry.Register(WithKeys(OpDef("CollectiveBcastRecv"))
                        .Output("data: T")
                        .Attr(kMoved)
                        .Attr("shape: shape")
                        .ShapeRule(GivenShape)
                        .NotDifferentiable("hands out initial values")
                        .Doc("Receives what the member of rank 0 sends with CollectiveBcastSend."));
  registry.Register(WithKeys(OpDef("CollectiveBarrier"))
                        .ShapeRule([](ShapeContext&) { return std::vector<Shape>(); })
                        .NotDifferentiable("has no value")
                        .Doc("Ends when all members of a group have come to it."));
}

namespace ops {

CollectiveKeys KeysOf(const Node& node) {
  CollectiveKeys keys;
  keys.group_size = node.attr<int64_t>("group_size");
  keys.group_key = node.attr<int64_t>("group_key");
  keys.instance_key = node.attr<int64_t>("instance_key");
  if (node.has_attr(kMembers)) keys.members = node.attr<std::vector<std::string>>(kMembers);
  if (node.has_attr(kGeneration)) keys.generation = node.attr<int64_t>(kGeneration);
  keys.timeout = TimeoutOf(node);
  if (node.has_attr(kProgressLimit)) {
    keys.progress_limit = std::chrono::milliseconds(node.attr<int64_t>(kProgressLimit));
  }
  keys.communication_hint = node.attr<std::string>("communication_hint");
  return keys;
}

int64_t NextInstanceKey(const Graph& graph) {
  int64_t last = 0;
  for (const Node* node : graph.nodes()) {
    if (!node->has_attr("instance_key")) continue;
    const int64_t key = node->attr<int64_t>("instance_key");
    if (key < kGradient) last = std::max(last, key);
  }
  return last + 1;
}

Output CollectiveReduce(Output input, const CollectiveKeys& keys, const std::string& merge_op,
                        const std::string& final_op, const NodeName& name) {
  return Reduction("CollectiveReduce", input, keys, merge_op, final_op).Name(name).Finish1();
}

Output CollectiveReduceScatter(Output input, const CollectiveKeys& keys, const std::string& merge_op,
                               const std::string& final_op, const NodeName& name) {
  return Reduction("CollectiveReduceScatter", input, keys, merge_op, final_op).Name(name).Finish1();
}

Output CollectiveGather(Output input, const CollectiveKeys& keys, const NodeName& name) {
  NodeBuilder builder = input.graph().Op("CollectiveGather");
  builder.Input(input).Attr("shape", input.shape());
  return WithKeys(std::move(builder), keys).Name(name).Finish1();
}

Output CollectiveBcastSend(Output input, const CollectiveKeys& keys, const NodeName& name) {
  NodeBuilder builder = input.graph().Op("CollectiveBcastSend");
  builder.Input(input).Attr("shape", input.shape());
  return WithKeys(std::move(builder), keys).Name(name).Finish1();
}

Output CollectiveBcastRecv(Graph& graph, DType dtype, const Shape& shape, const CollectiveKeys& keys,
                           const NodeName& name) {
  if (!shape.IsFullyDefined()) {
    throw InvalidArgumentError(
        StrCat("[collective] CollectiveBcastRecv '", name, "' needs a known shape; got ", shape));
  }
  NodeBuilder builder = graph.Op("CollectiveBcastRecv");
  builder.Attr("T", dtype).Attr("shape", shape);
  return WithKeys(std::move(builder), keys).Name(name).Finish1();
}

Node* CollectiveBarrier(Graph& graph, const CollectiveKeys& keys, const NodeName& name) {
  return WithKeys(graph.Op("CollectiveBarrier"), keys).Name(name).Finish();
}

}  // namespace ops
}  // namespace cohort
