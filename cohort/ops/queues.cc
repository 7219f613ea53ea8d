#include "cohort/ops/queues.h"

#include <optional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/random.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

// The shapes of the outputs of a dequeue, as far as they are known. TensorFlow's tools use an attribute of this name,
// too.
constexpr char kOutputShapes[] = "_output_shapes";
// Read by the kernel of QueueDequeueV2.
constexpr char kHeldBySession[] = "_held_by_session";

std::vector<Shape> NoShapes(ShapeContext&) { return {}; }

// Returns what the node says of its outputs.
std::vector<Shape> DequeueShapes(ShapeContext& c) {
  const size_t outputs = c.attr<std::vector<DType>>("component_types").size();
  if (!c.has_attr(kOutputShapes)) return ops::UnknownShapes(static_cast<int>(outputs));
  const auto& known = c.attr<std::vector<Shape>>(kOutputShapes);
  return known.size() == outputs ? known : ops::UnknownShapes(static_cast<int>(outputs));
}

std::vector<Shape> ManyElements(ShapeContext& c) {
  c.WithRank(1, 0);
  std::vector<Shape> shapes = DequeueShapes(c);
  const std::optional<Tensor> n = c.input_value(1);
  if (!n) return shapes;
  const int64_t count = ops::IntegerScalar(*n, "n");
  if (count < 0) {
    throw InvalidArgumentError(StrCat("[ops/queues] expected a number of elements of at least 0; got ", count));
  }
  for (Shape& shape : shapes) {
    if (shape.rank() > 0) shape.set_dim(0, count);
  }
  return shapes;
}

// If the queue is closed, there may be fewer elements than asked for.
std::vector<Shape> UpToElements(ShapeContext& c) {
  c.WithRank(1, 0);
  return DequeueShapes(c);
}

OpDef QueueOp(const char* name) {
  return OpDef(name)
      .Output("handle: resource")
      .Attr("component_types: list(type) >= 1")
      .Attr("shapes: list(shape) >= 0 = []")
      .Attr("capacity: int = -1")
      .ShapeRule(ops::ScalarShape)
      .NotDifferentiable("a handle is not a number")
      .Stateful();
}

OpDef WithName(OpDef def, const char* doc) {
  return std::move(def).Attr("container: string = ''").Attr("shared_name: string = ''").Doc(doc);
}

void RegisterEnqueue(OpRegistry& registry, const char* name, const char* doc) {
  registry.Register(OpDef(name)
                        .Input("handle: resource")
                        .Input("components: Tcomponents")
                        .Attr("Tcomponents: list(type) >= 1")
                        .Attr("timeout_ms: int = -1")
                        .ShapeRule(NoShapes)
                        .KeepsLastInput()
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .AddsToResource()
                        .Doc(doc));
}

void RegisterDequeue(OpRegistry& registry, const char* name, bool batched, ShapeFn rule, const char* doc) {
  OpDef def(name);
  std::move(def).Input("handle: resource");
  if (batched) std::move(def).HostInput("n: int32");
  registry.Register(std::move(def)
                        .Output("components: component_types")
                        .Attr("component_types: list(type) >= 1")
                        .Attr("timeout_ms: int = -1")
                        .ShapeRule(std::move(rule))
                        .ReturnsKeptValue()
                        .NotDifferentiable("the value comes from another step")
                        .Stateful()
                        .Doc(doc));
}

void RegisterQueueFacts(OpRegistry& registry) {
  registry.Register(OpDef("QueueSizeV2")
                        .Input("handle: resource")
                        .HostOutput("size: int32")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("a number of elements")
                        .Stateful()
                        .Doc("The number of elements in the queue."));
  registry.Register(OpDef("QueueIsClosedV2")
                        .Input("handle: resource")
                        .HostOutput("is_closed: bool")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("a truth value")
                        .Stateful()
                        .Doc("Whether the queue is closed."));
}

void RegisterQueueEnds(OpRegistry& registry) {
  registry.Register(
      OpDef("QueueCloseV2")
          .Input("handle: resource")
          .Attr("cancel_pending_enqueues: bool = false")
          .ShapeRule(NoShapes)
          .NotDifferentiable("has no output")
          .Stateful()
          .Doc("Closes the queue: later enqueues fail, and dequeues fail if there are too few elements."));
  registry.Register(OpDef("QueueReset")
                        .Input("handle: resource")
                        .ShapeRule(NoShapes)
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Removes all elements of the queue, and opens it if it is closed."));
  registry.Register(
      OpDef("QueueFailSession")
          .Input("handle: resource")
          .HostInput("code: int32")
          .HostInput("message: string")
          .ShapeRule(NoShapes)
          .NotDifferentiable("has no output")
          .Stateful()
          .Doc("Makes the dequeues of this step's session fail with the error, until the queue is reset."));
}

}  // namespace

void RegisterQueueOps(OpRegistry& registry) {
  registry.Register(WithName(QueueOp("FIFOQueueV2"), "Handle of a queue whose elements leave in the order they came."));
  registry.Register(WithName(
      QueueOp("RandomShuffleQueueV2").Attr("min_after_dequeue: int = 0").Attr("seed: int = 0").Attr("seed2: int = 0"),
      "Handle of a queue whose elements leave in random order."));
  RegisterEnqueue(registry, "QueueEnqueueV2", "Puts one element into the queue; waits while the queue is full.");
  RegisterEnqueue(registry, "QueueEnqueueManyV2", "Puts the rows of axis 0 into the queue, each as an element.");
  RegisterDequeue(registry, "QueueDequeueV2", false, DequeueShapes,
                  "Takes one element out of the queue; waits until there is one.");
  RegisterDequeue(registry, "QueueDequeueManyV2", true, ManyElements,
                  "Takes `n` elements out of the queue, stacked along a new axis 0; waits until there are so many.");
  RegisterDequeue(registry, "QueueDequeueUpToV2", true, UpToElements,
                  "As QueueDequeueManyV2, but takes fewer elements if the queue is closed and has fewer.");
  RegisterQueueFacts(registry);
  RegisterQueueEnds(registry);
}

namespace ops {
namespace {

void CheckQueue(const std::vector<DType>& dtypes, const QueueOptions& options) {
  if (dtypes.empty()) throw InvalidArgumentError("[ops/queues] expected at least one dtype of a queue; got none");
  if (!options.shapes.empty() && options.shapes.size() != dtypes.size()) {
    throw InvalidArgumentError(StrCat("[ops/queues] expected one shape for each of the ", dtypes.size(),
                                      " components, or no shapes; got ", options.shapes.size()));
  }
  for (const Shape& shape : options.shapes) {
    if (shape.IsFullyDefined()) continue;
    throw InvalidArgumentError(StrCat("[ops/queues] expected shapes whose dimensions are known; got ", shape,
                                      " (All shapes must be fully ", "defined)"));
  }
  if (options.capacity == 0) {
    throw InvalidArgumentError("[ops/queues] expected a capacity of at least 1, or -1 for no limit; got 0");
  }
}

NodeBuilder QueueNode(Graph& graph, const char* op, const char* name, const std::vector<DType>& dtypes,
                      const QueueOptions& options) {
  CheckQueue(dtypes, options);
  NodeBuilder builder = graph.Op(op, options.name.site());
  builder.Name(options.name.empty() ? NodeName(name, options.name.site()) : options.name)
      .Attr("component_types", dtypes)
      .Attr("shapes", options.shapes)
      .Attr("capacity", options.capacity)
      .Attr("shared_name", options.shared_name)
      .Attr("container", options.container);
  return builder;
}

}  // namespace

Queue::Queue(Output handle, std::vector<DType> dtypes, std::vector<Shape> shapes)
    : handle_(handle), dtypes_(std::move(dtypes)), shapes_(std::move(shapes)) {}

NodeBuilder Queue::Add(const char* op, const char* suffix, const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  NodeBuilder builder = handle_.graph().Op(op, name.site());
  builder.Name(name.empty() ? NodeName(handle_.node->name() + suffix, name.site()) : name).Input(handle_);
  return builder;
}

Node* Queue::Enqueue(const std::vector<Output>& components, const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return Add("QueueEnqueueV2", "_enqueue", name).Inputs(components).Finish();
}

Node* Queue::EnqueueMany(const std::vector<Output>& components, const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return Add("QueueEnqueueManyV2", "_EnqueueMany", name).Inputs(components).Finish();
}

std::vector<Output> Queue::Dequeue(const DequeueOptions& options, const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  NodeBuilder builder = Add("QueueDequeueV2", "_Dequeue", name);
  builder.Attr("component_types", dtypes_);
  if (!shapes_.empty()) builder.Attr(kOutputShapes, shapes_);
  if (options.held_by_session) builder.Attr(kHeldBySession, true);
  Node* node = builder.Finish();
  std::vector<Output> components;
  for (int i = 0; i < node->num_outputs(); ++i) components.push_back(node->output(i));
  return components;
}

std::vector<Output> Queue::AddDequeue(const char* op, const char* suffix, const Operand& n,
                                      const NodeName& name) const {
  if (shapes_.empty()) {
    throw InvalidArgumentError(StrCat("[ops/queues] expected a queue with shapes for ", op, "; '", this->name(),
                                      "' has none (QueueOptions::shapes)"));
  }
  std::vector<Shape> batches;
  for (const Shape& shape : shapes_) batches.push_back(Shape{Shape::kUnknownDim}.Concat(shape));
  const ColocateWith beside(handle_.graph(), *handle_.node);
  Node* node = Add(op, suffix, name)
                   .Input(n.In(handle_.graph(), DType::kInt32, StrCat("the number of elements of ", op)))
                   .Attr("component_types", dtypes_)
                   .Attr(kOutputShapes, batches)
                   .Finish();
  std::vector<Output> components;
  for (int i = 0; i < node->num_outputs(); ++i) components.push_back(node->output(i));
  return components;
}

std::vector<Output> Queue::DequeueMany(const Operand& n, const NodeName& name) const {
  return AddDequeue("QueueDequeueManyV2", "_DequeueMany", n, name);
}
std::vector<Output> Queue::DequeueUpTo(const Operand& n, const NodeName& name) const {
  return AddDequeue("QueueDequeueUpToV2", "_DequeueUpTo", n, name);
}

Output Queue::Size(const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return Add("QueueSizeV2", "_Size", name).Finish1();
}

Output Queue::IsClosed(const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return Add("QueueIsClosedV2", "_is_closed", name).Finish1();
}

Node* Queue::Close(bool cancel_pending_enqueues, const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return Add("QueueCloseV2", "_Close", name).Attr("cancel_pending_enqueues", cancel_pending_enqueues).Finish();
}

Node* Queue::Reset(const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return Add("QueueReset", "_Reset", name).Finish();
}

Node* Queue::FailSession(const Operand& code, const Operand& message, const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return Add("QueueFailSession", "_FailSession", name)
      .Input(code.In(handle_.graph(), DType::kInt32, "the code of QueueFailSession"))
      .Input(message.In(handle_.graph(), DType::kString, "the message of QueueFailSession"))
      .Finish();
}

FIFOQueue::FIFOQueue(Graph& graph, const std::vector<DType>& dtypes, const QueueOptions& options)
    : Queue(QueueNode(graph, "FIFOQueueV2", "fifo_queue", dtypes, options).Finish1(), dtypes, options.shapes) {}

RandomShuffleQueue::RandomShuffleQueue(Graph& graph, int64_t min_after_dequeue, const std::vector<DType>& dtypes,
                                       const QueueOptions& options, int64_t seed)
    : Queue(QueueNode(graph, "RandomShuffleQueueV2", "random_shuffle_queue", dtypes, options)
                .Attr("min_after_dequeue", min_after_dequeue)
                .Attr("seed", SeedPair(graph, seed).first)
                .Attr("seed2", SeedPair(graph, seed).second)
                .Finish1(),
            dtypes, options.shapes) {}

}  // namespace ops
}  // namespace cohort
