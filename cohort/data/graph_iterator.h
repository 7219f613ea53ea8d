// GraphIterator: an iterator over a dataset inside a graph. The dataset runs on the task where the iterator's nodes are
// placed, and each run of a graph that needs the next element takes it there. It follows TensorFlow's
// tf.compat.v1.data.make_initializable_iterator.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/graph/graph.h"

namespace cohort::data {

// The most bytes that the tensors inside of a dataset may have together if the dataset goes into a graph: 1 GiB.
inline constexpr int64_t kMaxGraphSourceBytes = int64_t{1} << 30;

struct COHORT_EXPORT GraphIteratorOptions {
  std::string name = "Iterator";  // name of the handle's node, made unique under the current name scope
  // Iterators with the same shared name on one task are one iterator, also those of other sessions; it stays on the
  // task until the task ends. "": the iterator belongs to its session, and ends with it.
  std::string shared_name = "";
};

// The next element of an iterator, or nothing if the iterator was at its end (TensorFlow's tf.experimental.Optional).
// Cheap to copy. It can be used while its graph lives.
class COHORT_EXPORT GraphOptional {
 public:
  GraphOptional() = default;
  // `variant`: a scalar of dtype variant that one of the Optional ops has made. `spec`: dtypes and shapes of the
  // element.
  GraphOptional(Output variant, ElementSpec spec) : variant_(variant), spec_(std::move(spec)) {}

  Output variant() const { return variant_; }
  const ElementSpec& element_spec() const { return spec_; }
  // Returns whether there is an element: bool scalar.
  Output HasValue(const NodeName& name = "OptionalHasValue") const;
  // Returns the components of the element. If there is no element, the step fails with InvalidArgumentError.
  std::vector<Output> GetValue(const NodeName& name = "OptionalGetValue") const;

 private:
  Output variant_;
  ElementSpec spec_;
};

// Returns an optional that has these components. Throws InvalidArgumentError if there are no components.
COHORT_EXPORT GraphOptional OptionalFromValue(const std::vector<Output>& components,
                                              const NodeName& name = "OptionalFromValue");
// Returns an optional without an element. `spec` is what an element would have.
COHORT_EXPORT GraphOptional OptionalNone(Graph& graph, const ElementSpec& spec, const NodeName& name = "OptionalNone");

// Nodes that put an iterator at the start of a dataset, and the values to feed when they run.
struct COHORT_EXPORT GraphIteratorInitializer {
  Node* node = nullptr;
  std::vector<std::pair<Output, Tensor>> feeds;  // the dataset: its description, then the tensors inside of it
  // What the dataset is, without the bytes of its tensors. Equal texts mean equal datasets.
  std::string description;
};

// An iterator of a graph. Cheap to copy. It can be used while its graph lives. MakeGraphIterator makes it.
//
// The values of GetNext are the components of the element, in the order of the element. A dataset of this library has
// no nested structure: an element is a list of tensors, and element_spec() says how many. The convention for examples
// is "features first, then labels, then sample weights", as in FromTensorSlices({x, y}): GetNext() then returns {x, y}.
// If a model has several features, they are the first components, in the order of the model's inputs.
class COHORT_EXPORT GraphIterator {
 public:
  GraphIterator() = default;
  // `handle`: the output of an IteratorV2 with elements of `spec`. `initializer`: the MakeIterator, or null.
  GraphIterator(Output handle, Node* initializer, ElementSpec spec)
      : handle_(handle), initializer_(initializer), spec_(std::move(spec)) {}

  bool valid() const { return handle_.valid(); }
  // Returns the handle of the iterator: a scalar of dtype resource, which is on the iterator's device.
  Output handle() const { return handle_; }
  // Returns the node that puts the iterator at the start of the dataset. To run it again starts again: the next element
  // is the first one. It is one of the graph's local initializers (ops::AddLocalInitializer), so
  // ops::LocalVariablesInitializer, the Supervisor and the MonitoredTrainingSession run it.
  Node* initializer() const { return initializer_; }
  const ElementSpec& element_spec() const { return spec_; }
  // Adds an initializer for another dataset with elements of this iterator's spec (TensorFlow's
  // Iterator.make_initializer). The dataset is fed to it, and is no part of the graph. It is not a local initializer.
  // If `known`, an initializer of this iterator, was made for a dataset with as many tensors of the same dtypes, adds
  // no nodes: the result has the nodes of `known` and other feeds. Throws what MakeGraphIterator throws, and
  // InvalidArgumentError if the elements do not fit the spec.
  GraphIteratorInitializer MakeInitializer(const Dataset& dataset, const GraphIteratorInitializer& known = {}) const;

  // Adds a node that puts the iterator at the start of the dataset that it got from the initializer that ran last. The
  // task has kept this dataset, so nothing is fed. The node's step fails with FailedPreconditionError if no initializer
  // has run in the session.
  Node* MakeRestart() const;

  // Adds a node that takes the next element, and returns the components of the element. All outputs of one call are of
  // one element. The node runs at most once in a step, so all users of these outputs see the same element; each further
  // call of GetNext takes a further element. Elements are given out in the order in which steps ask. The step fails
  // with
  // - OutOfRangeError "End of sequence" at the end, and in each later step until the initializer runs again;
  // - FailedPreconditionError if the initializer has not run;
  // - the error of a stage that throws, with the names of stage and pipeline. The next step continues after the element
  //   that failed.
  // While the node waits for an element, it holds no thread of its device. If the step is cancelled or the session is
  // closed meanwhile, the step ends with that error, and the element goes to the next step that asks.
  std::vector<Output> GetNext(const NodeName& name = "IteratorGetNext") const;
  // As GetNext, but takes the element with the number `index`, a scalar int64 from 0, of the dataset. The iterator
  // passes over the elements before it, and begins again at the start if it is beyond it. So of iterators of one
  // dataset on several tasks, each can take its own elements, and an element can be taken again. An element whose stage
  // throws counts as one. Mix it with GetNext only if the next element of that does not matter.
  std::vector<Output> GetAt(Output index, const NodeName& name = "IteratorGetAt") const;
  // As GetNext, but the end is not an error: the optional then has no value.
  GraphOptional GetNextAsOptional(const NodeName& name = "IteratorGetNextAsOptional") const;

 private:
  Output handle_;
  Node* initializer_ = nullptr;
  ElementSpec spec_;
};

// Adds an iterator over `dataset` to the graph. The current device scope places the handle. The other nodes of the
// iterator, and those that GetNext adds later, are colocated with the handle. The tensors inside of the dataset become
// constants of the graph, and travel with it to the task. Throws
// - FailedPreconditionError that names the stage if the dataset calls a function of this process (a lambda over
//   tensors). Such a dataset cannot be part of a graph, not even for a session in this process: use a function of a
//   graph, or run a data::Iterator on the host and feed its elements;
// - InvalidArgumentError if the tensors inside of the dataset have more than kMaxGraphSourceBytes together.
COHORT_EXPORT GraphIterator MakeGraphIterator(Graph& graph, const Dataset& dataset,
                                              const GraphIteratorOptions& options = {},
                                              CallSite site = CallSite::Here());

// Adds an iterator without a dataset over elements of `spec` (TensorFlow's Iterator.from_structure). Its initializer()
// is null: make one with MakeInitializer. It is not among GraphIteratorHandles.
COHORT_EXPORT GraphIterator MakeGraphIterator(Graph& graph, const ElementSpec& spec,
                                              const GraphIteratorOptions& options = {},
                                              CallSite site = CallSite::Here());

// Returns the handles of all iterators over a dataset that MakeGraphIterator has added to the graph, in this order.
COHORT_EXPORT std::vector<Output> GraphIteratorHandles(const Graph& graph);

}  // namespace cohort::data
