// Dataset: an immutable description of input, with TensorFlow's stages and semantics, and the iterators that run it on
// the host. docs/data.md says what the stages promise.
#pragma once

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

struct COHORT_EXPORT IteratorOptions {
  // Shuffles that reshuffle take the order of this pass; a Repeat counts on from it.
  int64_t epoch = 0;
};

// One run over a dataset. Not thread-safe; threads of its stages end with it.
class COHORT_EXPORT Iterator {
 public:
  Iterator(std::shared_ptr<const DatasetNode> root, const IteratorOptions& options);
  ~Iterator();
  Iterator(const Iterator&) = delete;

  // Replaces *element by the next one; false at the end. Throws what a stage throws, with the stage's name; the next
  // call then goes on behind what failed.
  bool Next(std::vector<Tensor>* element);
  // As Next, but throws OutOfRangeError "End of sequence" at the end.
  std::vector<Tensor> Next();

  // The position, as bytes for Restore. Small where the sources have random access; otherwise it holds the elements
  // that wait in buffers of Shuffle, Prefetch and Map. Halts their threads meanwhile.
  std::string Save();
  // Goes to a position saved by an iterator over a dataset that was described alike (another process will do): the
  // elements that follow are exactly those that the saved iterator would have yielded, also where a shuffle had no
  // seed. Throws InvalidArgumentError for the position of another pipeline, DataLossError for damaged bytes.
  void Restore(std::string_view position);

  const ElementSpec& element_spec() const;

 private:
  struct Seeds;
  const std::shared_ptr<const DatasetNode> root_;
  const std::unique_ptr<Seeds> seeds_;
  int64_t epoch_;
  std::unique_ptr<StageIterator> stage_;
};

struct COHORT_EXPORT MapOptions {
  // Calls under way at once, on threads of the iterator; the order of elements stays. 1: on the caller's thread.
  int num_parallel_calls = 1;
};
struct COHORT_EXPORT InterleaveOptions {
  int cycle_length = 4;  // inner datasets that are open at once
  int block_length = 1;  // elements taken from one before the next has its turn
};

// Functions of the host. Called on threads of the iterator where calls are parallel, so they have to be thread-safe
// there. A dataset that has one cannot be serialised; those of graphs can.
using HostMap = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
using HostPredicate = std::function<bool(const std::vector<Tensor>&)>;
using HostDatasetFunction = std::function<Dataset(const std::vector<Tensor>&)>;

// Cheap to copy. All stages throw InvalidArgumentError for parameters that make no sense.
class COHORT_EXPORT Dataset {
 public:
  // The slices of the tensors along axis 0, which has the same size in all. Shares the tensors' bytes.
  static Dataset FromTensorSlices(std::vector<Tensor> tensors);
  // One element.
  static Dataset FromTensors(std::vector<Tensor> tensors);
  // int64 scalars start, start + step, ... below (or, for a negative step, above) stop.
  static Dataset Range(int64_t start, int64_t stop, int64_t step = 1);
  static Dataset Range(int64_t stop) { return Range(0, stop); }
  // Elements with the components of all, in order; ends with the shortest.
  static Dataset Zip(const std::vector<Dataset>& datasets);

  Dataset Concatenate(const Dataset& other) const;
  // Draws from a buffer of `buffer_size` elements. With a seed (which counts modulo 2^31 - 1) the order is TensorFlow's
  // for the same seed, where that has no global one. `reshuffle_each_iteration`: each pass of a Repeat, and each epoch
  // of IteratorOptions, has its own order.
  Dataset Shuffle(int64_t buffer_size, std::optional<int64_t> seed = std::nullopt,
                  bool reshuffle_each_iteration = true) const;
  Dataset Repeat(int64_t count = -1) const;  // -1: endlessly
  Dataset Batch(int64_t batch_size, bool drop_remainder = false) const;
  Dataset Unbatch() const;
  Dataset Take(int64_t count) const;  // -1: all
  Dataset Skip(int64_t count) const;  // -1: all
  // Elements whose index modulo `num_shards` is `index`; both kShardHint (auto_shard.h): decided by AutoShard.
  Dataset Shard(int64_t num_shards, int64_t index) const;
  // Keeps the elements of the first whole pass: in memory, for all iterators of this description, or in the file
  // `<filename>.cache`, where a later process finds them too.
  Dataset Cache(const std::string& filename = "") const;
  // A thread of the iterator keeps up to `buffer_size` elements ready (-1: chosen by us; 0: no thread).
  Dataset Prefetch(int64_t buffer_size = -1) const;
  // A function of a graph (graph/function.h), or the body of one, whose arguments are the components. Such a dataset
  // can be serialised. Run on the iterator's threads, one core a call.
  Dataset Map(const FunctionBody& body, const MapOptions& options = {}) const;
  Dataset Map(std::shared_ptr<const Function> function, const MapOptions& options = {}) const;
  // The function has one result, a bool scalar.
  Dataset Filter(const FunctionBody& body) const;
  Dataset Filter(std::shared_ptr<const Function> function) const;
  // The inner datasets are the slices of the function's results along axis 0.
  Dataset Interleave(const FunctionBody& body, const InterleaveOptions& options = {}) const;
  Dataset Interleave(std::shared_ptr<const Function> function, const InterleaveOptions& options = {}) const;
  // `output_spec`: what the function yields; it is checked.
  Dataset Map(HostMap function, ElementSpec output_spec, const MapOptions& options = {}) const;
  Dataset Filter(HostPredicate predicate) const;
  // `output_spec`: of the inner datasets.
  Dataset Interleave(HostDatasetFunction function, ElementSpec output_spec,
                     const InterleaveOptions& options = {}) const;

  const ElementSpec& element_spec() const;
  // Number of elements, kInfiniteCardinality or kUnknownCardinality.
  int64_t Cardinality() const;
  std::unique_ptr<Iterator> MakeIterator(const IteratorOptions& options = {}) const;
  // The pipeline: "Range(0, 10, 1).Shuffle(10, seed=3).Batch(4)".
  std::string ToString() const;

  // For stages (data/stages/stage.h).
  explicit Dataset(std::shared_ptr<const DatasetNode> node) : node_(std::move(node)) {}
  const std::shared_ptr<const DatasetNode>& node() const { return node_; }

 private:
  std::shared_ptr<const DatasetNode> node_;
};

}  // namespace cohort::data
