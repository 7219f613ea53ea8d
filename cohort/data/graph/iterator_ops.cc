// The schemas and shape rules of the ops of iterators. The kernels are in iterator_kernels.cc.
#include "cohort/data/graph/iterator_ops.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"

namespace cohort {
namespace {

constexpr char kElementsWhy[] = "elements of a dataset come from outside of the graph";

data::ElementSpec SpecOfNode(ShapeContext& c) {
  return data::SpecFromAttrs(c.attr<std::vector<DType>>("output_types"), c.attr<std::vector<Shape>>("output_shapes"));
}

// The rule of an op that returns one object for elements of the spec.
std::vector<Shape> OneOfSpec(ShapeContext& c) {
  SpecOfNode(c);
  return {Shape()};
}

std::vector<Shape> OneScalar(ShapeContext&) { return {Shape()}; }

std::vector<Shape> ComponentShapes(ShapeContext& c) { return data::ShapesOf(SpecOfNode(c)); }

OpDef WithSpec(OpDef def) {
  return std::move(def).Attr("output_types: list(type) >= 1").Attr("output_shapes: list(shape) >= 1");
}

void RegisterIterators(OpRegistry& registry) {
  registry.Register(WithSpec(OpDef("DatasetFromDescription")
                                 .HostInput("description: string")
                                 .HostInput("hashes: int64")
                                 .HostInput("tensors: Ttensors")
                                 .Output("handle: variant")
                                 .Attr("Ttensors: list(type) >= 0"))
                        .ShapeRule(OneOfSpec)
                        .NotDifferentiable(kElementsWhy)
                        .Stateful()
                        .Doc("The dataset that `description` describes. `tensors` are those inside of it, by hash."));
  registry.Register(WithSpec(OpDef("IteratorV2")
                                 .Output("handle: resource")
                                 .Attr("shared_name: string = ''")
                                 .Attr("container: string = ''"))
                        .ShapeRule(OneOfSpec)
                        .NotDifferentiable(kElementsWhy)
                        .Stateful()
                        .Doc("The iterator of this name, which is on the task between steps. MakeIterator gives it a "
                             "dataset."));
  registry.Register(OpDef("MakeIterator")
                        .Input("dataset: variant")
                        .Input("iterator: resource")
                        .ShapeRule([](ShapeContext&) { return std::vector<Shape>(); })
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Puts `iterator` at the start of `dataset`."));
  registry.Register(
      WithSpec(OpDef("IteratorGetNext").Input("iterator: resource").HostOutput("components: output_types"))
          .ShapeRule(ComponentShapes)
          .NotDifferentiable(kElementsWhy)
          .Stateful()
          .Doc("The components of the next element. The step fails with OutOfRange at the end."));
  registry.Register(WithSpec(OpDef("IteratorGetNextAsOptional").Input("iterator: resource").Output("optional: variant"))
                        .ShapeRule(OneOfSpec)
                        .NotDifferentiable(kElementsWhy)
                        .Stateful()
                        .Doc("The next element as an optional, which has no value at the end."));
}

void RegisterOptionals(OpRegistry& registry) {
  registry.Register(OpDef("OptionalFromValue")
                        .HostInput("components: Toutput_types")
                        .Output("optional: variant")
                        .Attr("Toutput_types: list(type) >= 1")
                        .ShapeRule(OneScalar)
                        .NotDifferentiable("an optional carries no gradient")
                        .Doc("An optional that has these components."));
  registry.Register(OpDef("OptionalNone")
                        .Output("optional: variant")
                        .ShapeRule(OneScalar)
                        .NotDifferentiable("has no input")
                        .Doc("An optional without a value."));
  registry.Register(OpDef("OptionalHasValue")
                        .Input("optional: variant")
                        .HostOutput("has_value: bool")
                        .ShapeRule(OneScalar)
                        .NotDifferentiable("the output is a truth value")
                        .Doc("Whether the optional has a value."));
  registry.Register(
      WithSpec(OpDef("OptionalGetValue").Input("optional: variant").HostOutput("components: output_types"))
          .ShapeRule(ComponentShapes)
          .NotDifferentiable("an optional carries no gradient")
          .Doc("The components of an optional's value. The step fails if it has none."));
}

void RegisterPositions(OpRegistry& registry) {
  registry.Register(WithSpec(OpDef("_IteratorGetAt")
                                 .Input("iterator: resource")
                                 .HostInput("index: int64")
                                 .HostOutput("components: output_types"))
                        .ShapeRule([](ShapeContext& c) {
                          c.WithRank(1, 0);
                          return ComponentShapes(c);
                        })
                        .NotDifferentiable(kElementsWhy)
                        .Stateful()
                        .Doc("The components of the element with this number, from 0. The iterator passes over those "
                             "before it, and begins again if it is beyond it. The step fails with OutOfRange at the "
                             "end."));
  registry.Register(OpDef("_IteratorRestart")
                        .Input("iterator: resource")
                        .ShapeRule([](ShapeContext&) { return std::vector<Shape>(); })
                        .NotDifferentiable("has no output")
                        .Stateful()
                        .Doc("Puts the iterator at the start of the dataset that MakeIterator gave it last."));
  registry.Register(OpDef("_IteratorSave")
                        .Input("iterator: resource")
                        .HostOutput("position: string")
                        .ShapeRule(OneScalar)
                        .NotDifferentiable("the output is bytes")
                        .Stateful()
                        .Doc("The position of the iterator in its dataset."));
  registry.Register(
      OpDef("_IteratorRestore")
          .Input("iterator: resource")
          .HostInput("position: string")
          .ShapeRule([](ShapeContext& c) {
            c.WithRank(1, 0);
            return std::vector<Shape>();
          })
          .NotDifferentiable("has no output")
          .Stateful()
          .Doc("Makes the iterator go to a position. If it is initialized again before the next element is "
               "taken, it begins there."));
}

}  // namespace

void RegisterDatasetOps(OpRegistry& registry) {
  RegisterIterators(registry);
  RegisterPositions(registry);
  RegisterOptionals(registry);
}

namespace data {

std::vector<DType> TypesOf(const ElementSpec& spec) {
  std::vector<DType> types;
  for (const TensorSpec& part : spec) types.push_back(part.dtype);
  return types;
}

std::vector<Shape> ShapesOf(const ElementSpec& spec) {
  std::vector<Shape> shapes;
  for (const TensorSpec& part : spec) shapes.push_back(part.shape);
  return shapes;
}

ElementSpec SpecFromAttrs(const std::vector<DType>& types, const std::vector<Shape>& shapes) {
  if (types.size() != shapes.size()) {
    throw InvalidArgumentError(StrCat("[iterator] expected as many output_shapes as output_types; got ", shapes.size(),
                                      " and ", types.size()));
  }
  ElementSpec spec;
  for (size_t i = 0; i < types.size(); ++i) spec.push_back({types[i], shapes[i]});
  return spec;
}

}  // namespace data
}  // namespace cohort
