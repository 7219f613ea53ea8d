#include "cohort/data/graph_iterator.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/graph/iterator_ops.h"
#include "cohort/data/serialize.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/variables.h"

namespace cohort::data {
namespace {

constexpr char kIterators[] = "iterators";  // the collection of the handles

SerializedDataset SerializeForGraph(const Dataset& dataset, const std::string& name) {
  try {
    return Serialize(dataset, kMaxGraphSourceBytes);
  } catch (const FailedPreconditionError& error) {
    throw FailedPreconditionError(
        StrCat("[iterator] expected a dataset without functions of this process for iterator '", name,
               "', because it is a part of the graph and may run on another task; got ", dataset.ToString(), " (",
               error.what(), "). Or run it with Dataset::MakeIterator and feed its elements"));
  }
}

NodeBuilder WithSpec(NodeBuilder builder, const ElementSpec& spec) {
  builder.Attr("output_types", TypesOf(spec)).Attr("output_shapes", ShapesOf(spec));
  return builder;
}

// Returns the values of the inputs of the dataset's node: the description, the hashes of the tensors, and the tensors.
// The tensors are ordered by dtype, so that the dtypes of the inputs depend on the kinds of tensors alone.
std::vector<Tensor> InputsOfDataset(const SerializedDataset& serialized) {
  std::vector<std::pair<uint64_t, Tensor>> tensors(serialized.tensors.begin(), serialized.tensors.end());
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.second.dtype() < b.second.dtype(); });
  std::vector<int64_t> hashes;
  for (const auto& [hash, tensor] : tensors) hashes.push_back(static_cast<int64_t>(hash));
  std::vector<Tensor> values = {Tensor::Scalar(serialized.description), Tensor::Vector(hashes)};
  for (const auto& [hash, tensor] : tensors) values.push_back(tensor);
  return values;
}

// Adds the dataset's node. `inputs` have the values of InputsOfDataset.
Output AddDataset(Graph& graph, const std::vector<Output>& inputs, const ElementSpec& spec) {
  return WithSpec(graph.Op("DatasetFromDescription"), spec)
      .Name("Dataset")
      .Input(inputs.at(0))
      .Input(inputs.at(1))
      .Inputs({inputs.begin() + 2, inputs.end()})
      .Finish1();
}

// Returns whether the initializer's nodes can be fed with these values.
bool Takes(const GraphIteratorInitializer& initializer, const std::vector<Tensor>& values) {
  return initializer.node != nullptr &&
         std::equal(initializer.feeds.begin(), initializer.feeds.end(), values.begin(), values.end(),
                    [](const auto& feed, const Tensor& value) { return feed.first.dtype() == value.dtype(); });
}

std::vector<Output> OutputsOf(Node* node) {
  std::vector<Output> outputs;
  outputs.reserve(static_cast<size_t>(node->num_outputs()));
  for (int i = 0; i < node->num_outputs(); ++i) outputs.push_back(node->output(i));
  return outputs;
}

}  // namespace

Output GraphOptional::HasValue(const NodeName& name) const {
  const ColocateWith beside(variant_.graph(), *variant_.node);
  return ops::Op("OptionalHasValue", {variant_}).Name(name).Finish1();
}

std::vector<Output> GraphOptional::GetValue(const NodeName& name) const {
  const ColocateWith beside(variant_.graph(), *variant_.node);
  return OutputsOf(WithSpec(ops::Op("OptionalGetValue", {variant_}), spec_).Name(name).Finish());
}

GraphOptional OptionalFromValue(const std::vector<Output>& components, const NodeName& name) {
  if (components.empty()) throw InvalidArgumentError("[iterator] expected the components of an optional; got none");
  ElementSpec spec;
  for (const Output& component : components) spec.push_back({component.dtype(), component.shape()});
  Graph& graph = components[0].graph();
  return {graph.Op("OptionalFromValue").Name(name).Inputs(components).Finish1(), std::move(spec)};
}

GraphOptional OptionalNone(Graph& graph, const ElementSpec& spec, const NodeName& name) {
  return {graph.Op("OptionalNone").Name(name).Finish1(), spec};
}

std::vector<Output> GraphIterator::GetNext(const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return OutputsOf(WithSpec(ops::Op("IteratorGetNext", {handle_}), spec_).Name(name).Finish());
}

std::vector<Output> GraphIterator::GetAt(Output index, const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return OutputsOf(WithSpec(ops::Op("_IteratorGetAt", {handle_, index}), spec_).Name(name).Finish());
}

GraphOptional GraphIterator::GetNextAsOptional(const NodeName& name) const {
  const ColocateWith beside(handle_.graph(), *handle_.node);
  return {WithSpec(ops::Op("IteratorGetNextAsOptional", {handle_}), spec_).Name(name).Finish1(), spec_};
}

GraphIteratorInitializer GraphIterator::MakeInitializer(const Dataset& dataset,
                                                        const GraphIteratorInitializer& known) const {
  Graph& graph = handle_.graph();
  const SerializedDataset serialized = SerializeForGraph(dataset, handle_.node->name());
  if (!IsCompatible(spec_, dataset.element_spec())) {
    throw InvalidArgumentError(StrCat("[iterator] expected a dataset with elements ", ToString(spec_),
                                      " for iterator '", handle_.node->name(), "'; got ",
                                      ToString(dataset.element_spec()), " (", dataset.ToString(), ")"));
  }
  GraphIteratorInitializer made;
  made.description = serialized.description;
  for (const auto& [hash, tensor] : serialized.tensors) made.description += StrCat(" ", hash);
  const std::vector<Tensor> values = InputsOfDataset(serialized);
  if (Takes(known, values)) {
    made.node = known.node;
    for (size_t i = 0; i < values.size(); ++i) made.feeds.emplace_back(known.feeds[i].first, values[i]);
    return made;
  }
  const ControlDependencies none(graph, nullptr);
  const NameScope inside(graph, handle_.node->name() + "/");
  const ColocateWith beside(graph, *handle_.node);
  std::vector<Output> inputs;
  for (const Tensor& value : values) {
    inputs.push_back(ops::Placeholder(graph, value.dtype(), Shape::UnknownRank(), "dataset_part"));
    made.feeds.emplace_back(inputs.back(), value);
  }
  const Output source = AddDataset(graph, inputs, spec_);
  made.node = graph.Op("MakeIterator").Input(source).Input(handle_).Finish();
  return made;
}

Node* GraphIterator::MakeRestart() const {
  Graph& graph = handle_.graph();
  const ControlDependencies none(graph, nullptr);
  const NameScope inside(graph, handle_.node->name() + "/");
  const ColocateWith beside(graph, *handle_.node);
  return graph.Op("_IteratorRestart").Name("Restart").Input(handle_).Finish();
}

namespace {

GraphIterator AddIterator(Graph& graph, const ElementSpec& spec, const GraphIteratorOptions& options) {
  const ControlDependencies none(graph, nullptr);  // an iterator does not depend on where in a program it is made
  Node* handle =
      WithSpec(graph.Op("IteratorV2"), spec).Name(options.name).Attr("shared_name", options.shared_name).Finish();
  return {handle->output(0), nullptr, spec};
}

}  // namespace

GraphIterator MakeGraphIterator(Graph& graph, const ElementSpec& spec, const GraphIteratorOptions& options,
                                CallSite site) {
  const CallSiteScope line(graph, site);
  return AddIterator(graph, spec, options);
}

GraphIterator MakeGraphIterator(Graph& graph, const Dataset& dataset, const GraphIteratorOptions& options,
                                CallSite site) {
  const SerializedDataset serialized = SerializeForGraph(dataset, options.name);
  const ElementSpec& spec = dataset.element_spec();
  const CallSiteScope line(graph, site);
  const ControlDependencies none(graph, nullptr);
  Node* handle = AddIterator(graph, spec, options).handle().node;
  const NameScope inside(graph, handle->name() + "/");
  const ColocateWith beside(graph, *handle);
  std::vector<Output> inputs;
  for (const Tensor& value : InputsOfDataset(serialized)) inputs.push_back(ops::Const(graph, value, "dataset_part"));
  const Output source = AddDataset(graph, inputs, spec);
  Node* initializer = graph.Op("MakeIterator").Input(source).Input(handle->output(0)).Finish();
  ops::AddLocalInitializer(initializer);
  graph.AddToCollection(kIterators, handle->output(0));
  return {handle->output(0), initializer, spec};
}

std::vector<Output> GraphIteratorHandles(const Graph& graph) { return graph.collection(kIterators); }

}  // namespace cohort::data
