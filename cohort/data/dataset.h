// Dataset: an immutable description of input data, with the stages and the semantics of tf.data. Iterator: a run over a
// dataset on the host. docs/data.md explains the stages, positions and threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/element.h"
#include "cohort/graph/graph.h"

namespace cohort::data {

class DatasetNode;
class Dataset;
class StageIterator;

// The options of an iterator.
struct COHORT_EXPORT IteratorOptions {
  // The number of the pass at which the iterator begins. A Shuffle that reshuffles has another order in each pass. A
  // Repeat counts its passes from this number.
  int64_t epoch = 0;
  // If this becomes true, Next and the threads of the stages stop soon, also in a loop that would never end: Next then
  // throws CancelledError. A call of a function and a read of a file that are under way are not interrupted. May be
  // null.
  std::shared_ptr<const std::atomic<bool>> stop = nullptr;
};

// One run over a dataset. The caller of MakeIterator owns it; it keeps the dataset's description alive. Not
// thread-safe: one thread at a time may call. The destructor ends the threads of the stages. If such a thread is
// calling a function or reading a file, the destructor waits until that call returns.
class COHORT_EXPORT Iterator {
 public:
  Iterator(std::shared_ptr<const DatasetNode> root, const IteratorOptions& options);
  ~Iterator();
  Iterator(const Iterator&) = delete;

  // Replaces *element by the next element. Returns false at the end. If a stage throws, throws this error with the
  // stage's name added; the next call continues after the element that failed.
  bool Next(std::vector<Tensor>* element);
  // Returns the next element. Throws OutOfRangeError "End of sequence" at the end, and otherwise as the other Next
  // does.
  std::vector<Tensor> Next();

  // Sets *element to the element that the next call of Next will return, if the last stage is a Prefetch that has it
  // ready, and returns true. Otherwise returns false. Does not wait, and does not change the position.
  bool PeekReady(std::vector<Tensor>* element);

  // Returns the position as bytes for Restore. Most positions are a few bytes. But a Shuffle without random access to
  // its input, an Interleave and a Rebatch put the elements that wait in them into the position. If such a stage comes
  // before a Prefetch, a parallel Map or an Unbatch, these put their waiting elements into the position too. The
  // threads of Prefetch halt during the call.
  std::string Save();
  // Goes to a position that Save returned. The saved iterator may be of another process, but its dataset must have the
  // same ToString(). The elements that follow are exactly those that the saved iterator would have yielded, even if a
  // shuffle has no seed. Throws InvalidArgumentError for the position of another pipeline, DataLossError for damaged
  // bytes, and the errors of opening a file. If it throws, the iterator stays where it was.
  void Restore(std::string_view position);

  const ElementSpec& element_spec() const;

 private:
  struct Seeds;
  const std::shared_ptr<const DatasetNode> root_;
  const std::unique_ptr<Seeds> seeds_;
  int64_t epoch_;
  const std::shared_ptr<const std::atomic<bool>> stop_;
  std::unique_ptr<StageIterator> stage_;
};

// The options of Dataset::Map.
struct COHORT_EXPORT MapOptions {
  // How many calls may run at once, on threads of the iterator. Elements keep their order. 1 means on the caller's
  // thread. With more, the iterator takes elements of the input ahead: one for each thread, and up to 64 if the
  // function takes less than a few microseconds and the input gives its elements at once.
  int num_parallel_calls = 1;
};
// The options of Dataset::Interleave, which set the order in which inner datasets are read.
struct COHORT_EXPORT InterleaveOptions {
  int cycle_length = 4;  // inner datasets that are open at once
  int block_length = 1;  // elements taken from one inner dataset before the next one is read
};

// The options of Dataset::PaddedBatch. Each list has one entry for each component, or is empty.
struct COHORT_EXPORT PaddedBatchOptions {
  // The shape to which each value of the component is padded, without the dimension of the batch. It must have the rank
  // of the component. A dimension of -1 becomes as long as the longest value of the batch. Empty: the component's shape
  // in element_spec(), so that each dimension that is not known becomes as long as the longest.
  std::vector<Shape> padded_shapes;
  // A scalar of the component's dtype, which fills the room after a value. An undefined tensor (Tensor()) means zero,
  // false or the empty string. Empty: so for all components.
  std::vector<Tensor> padding_values;
  bool drop_remainder = false;  // as for Batch
};

// Functions of this process. They must be thread-safe if Map makes parallel calls, or if several iterators run at once.
// A dataset that calls them cannot be serialized; use a function of a graph for that.
using HostMap = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
using HostPredicate = std::function<bool(const std::vector<Tensor>&)>;
using HostDatasetFunction = std::function<Dataset(const std::vector<Tensor>&)>;
// Returns the next element, or nothing at the end.
using HostElementSource = std::function<std::optional<std::vector<Tensor>>()>;
// Begins a pass: returns a function that makes its elements. One thread at a time calls that function.
using HostGenerator = std::function<HostElementSource()>;

// Describes input as stages over sources. Cheap to copy, immutable, thread-safe. Every function that adds a stage
// throws InvalidArgumentError for invalid parameters.
class COHORT_EXPORT Dataset {
 public:
  // The elements are the slices of the tensors along axis 0. All tensors must have the same size of axis 0. The dataset
  // shares the tensors' bytes. Nobody may change them while an iterator exists: the elements may have them, too, and
  // stages and devices read elements before they are asked for.
  static Dataset FromTensorSlices(std::vector<Tensor> tensors);
  // The tensors are the dataset's only element.
  static Dataset FromTensors(std::vector<Tensor> tensors);
  // The elements are the int64 scalars start, start + step, ... before `stop`.
  static Dataset Range(int64_t start, int64_t stop, int64_t step = 1);
  static Dataset Range(int64_t stop) { return Range(0, stop); }
  // The elements are those that a function of this process makes. Each iterator, and each pass of a Repeat, calls
  // `generator` once. `output_spec`: dtypes and shapes of the elements, against which each of them is checked. If the
  // function throws, the next call of Next calls it again. Iterator::Restore makes the elements before the position
  // again and drops them, so a pass has to yield the same elements each time. The dataset cannot be serialized.
  static Dataset FromGenerator(HostGenerator generator, ElementSpec output_spec);
  // Element i has the components of element i of every dataset, in order. The result ends with the shortest dataset.
  static Dataset Zip(const std::vector<Dataset>& datasets);

  Dataset Concatenate(const Dataset& other) const;
  // Puts the number of each element before its components, as an int64 scalar: start, start + 1, ...
  Dataset Enumerate(int64_t start = 0) const;
  // Yields elements drawn at random from a buffer of `buffer_size` elements. With a seed (taken modulo 2^31 - 1), the
  // order is TensorFlow's for the same seed and no global seed. Without a seed, this call draws one. If
  // `reshuffle_each_iteration` is true, each pass of a Repeat and each epoch of IteratorOptions has its own order.
  Dataset Shuffle(int64_t buffer_size, std::optional<int64_t> seed = std::nullopt,
                  bool reshuffle_each_iteration = true) const;
  Dataset Repeat(int64_t count = -1) const;  // -1: endlessly
  // Stacks `batch_size` elements, whose shapes must be equal: component i becomes [rows, shape of component i]. The
  // last batch has fewer rows, or is left out if `drop_remainder` is true.
  Dataset Batch(int64_t batch_size, bool drop_remainder = false) const;
  // As Batch, but pads each value to its padded shape first, so that the shapes of the elements may differ. Component i
  // becomes [rows, padded shape of component i]. Values of ranks that are not known need `padded_shapes`. Throws
  // InvalidArgumentError if a padded shape or a padding value does not fit the component. Iterator::Next throws
  // DataLossError, as TensorFlow does, for a value that is larger than its padded shape, and InvalidArgumentError for a
  // value of another rank.
  Dataset PaddedBatch(int64_t batch_size, const PaddedBatchOptions& options = {}) const;
  Dataset Unbatch() const;
  Dataset Take(int64_t count) const;  // -1: all
  Dataset Skip(int64_t count) const;  // -1: all
  // Yields the elements whose index modulo `num_shards` is `index`. If both are kShardHint (auto_shard.h), AutoShard
  // replaces them.
  Dataset Shard(int64_t num_shards, int64_t index) const;
  // Keeps the elements of the first pass that reaches the end; later passes yield these elements and do not read the
  // input. If `filename` is "", the elements are in memory, for all iterators of this description. Otherwise they are
  // in the file `<filename>.cache`, which later processes use too.
  Dataset Cache(const std::string& filename = "") const;
  // A thread of the iterator keeps up to `buffer_size` elements ready. -1: Cohort chooses the size. 0: there is no
  // thread.
  Dataset Prefetch(int64_t buffer_size = -1) const;
  // Applies a function of a graph (graph/function.h) to each element. Its arguments are the element's components. Such
  // a dataset can be serialized. Each call uses one core.
  Dataset Map(const FunctionBody& body, const MapOptions& options = {}) const;
  Dataset Map(std::shared_ptr<const Function> function, const MapOptions& options = {}) const;
  // Keeps the elements for which the function returns true. It must return one bool scalar.
  Dataset Filter(const FunctionBody& body) const;
  Dataset Filter(std::shared_ptr<const Function> function) const;
  // Yields the elements before the first one for which the function returns false. It must return one bool scalar.
  Dataset TakeWhile(const FunctionBody& body) const;
  Dataset TakeWhile(std::shared_ptr<const Function> function) const;
  // Passes over elements that a stage before this one cannot make: a damaged record, a line that does not parse, a file
  // that cannot be opened, a function that throws. If `log_warning`, the log has a line for the first error, the
  // second, the fourth and so on. A thousand errors in a row are thrown, because such an input would never end, and
  // so is the error of a pass without any element. tf.data does the same, without these limits and without a log by
  // default.
  Dataset IgnoreErrors(bool log_warning = true) const;
  // Makes an inner dataset of each element, and reads from several inner datasets in turn. The elements of an inner
  // dataset are the slices, along axis 0, of the function's results.
  Dataset Interleave(const FunctionBody& body, const InterleaveOptions& options = {}) const;
  Dataset Interleave(std::shared_ptr<const Function> function, const InterleaveOptions& options = {}) const;
  // As Interleave, but reads each inner dataset to its end before the next one begins.
  Dataset FlatMap(const FunctionBody& body) const;
  Dataset FlatMap(std::shared_ptr<const Function> function) const;
  // The next ones take functions of this process. `output_spec`: dtypes and shapes of what the function returns. Each
  // result is checked against it.
  Dataset Map(HostMap function, ElementSpec output_spec, const MapOptions& options = {}) const;
  Dataset Filter(HostPredicate predicate) const;
  Dataset TakeWhile(HostPredicate predicate) const;
  // `output_spec`: dtypes and shapes of the elements of the inner datasets.
  Dataset Interleave(HostDatasetFunction function, ElementSpec output_spec,
                     const InterleaveOptions& options = {}) const;
  Dataset FlatMap(HostDatasetFunction function, ElementSpec output_spec) const;

  const ElementSpec& element_spec() const;
  // Returns the number of elements, kInfiniteCardinality or kUnknownCardinality.
  int64_t Cardinality() const;
  std::unique_ptr<Iterator> MakeIterator(const IteratorOptions& options = {}) const;
  // Returns the pipeline as text: "Range(0, 10, 1).Shuffle(10, seed=3).Batch(4)".
  std::string ToString() const;

  // Used by the stages (data/stages/stage.h).
  explicit Dataset(std::shared_ptr<const DatasetNode> node) : node_(std::move(node)) {}
  const std::shared_ptr<const DatasetNode>& node() const { return node_; }

 private:
  std::shared_ptr<const DatasetNode> node_;
};

}  // namespace cohort::data
