#include "cohort/data/dataset.h"

#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/element_function.h"
#include "cohort/data/graph_function.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/stages/stage.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {

void CheckParameter(bool ok, const char* expected, int64_t got) {
  if (!ok) throw InvalidArgumentError(StrCat("[data] expected ", expected, "; got ", got));
}

Dataset Dataset::FromTensorSlices(std::vector<Tensor> tensors) { return Dataset(MakeSlices(std::move(tensors))); }
Dataset Dataset::FromTensors(std::vector<Tensor> tensors) { return Dataset(MakeTensors(std::move(tensors))); }
Dataset Dataset::Range(int64_t start, int64_t stop, int64_t step) { return Dataset(MakeRange(start, stop, step)); }

Dataset Dataset::FromGenerator(HostGenerator generator, ElementSpec output_spec) {
  return Dataset(MakeGenerator(std::move(generator), std::move(output_spec)));
}
Dataset Dataset::Zip(const std::vector<Dataset>& datasets) {
  std::vector<NodePtr> nodes;
  nodes.reserve(datasets.size());
  for (const Dataset& dataset : datasets) nodes.push_back(dataset.node());
  return Dataset(MakeZip(std::move(nodes)));
}

Dataset Dataset::Enumerate(int64_t start) const {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Dataset numbers = Range(start, start < 0 ? start + kMost : kMost);  // as many as a Range may have
  // Repeat makes the numbers endless, as this dataset is. Without Repeat they have random access.
  return Zip({Cardinality() == kInfiniteCardinality ? numbers.Repeat() : numbers, *this});
}

Dataset Dataset::Concatenate(const Dataset& other) const { return Dataset(MakeConcatenate(node_, other.node_)); }
Dataset Dataset::Shuffle(int64_t buffer_size, std::optional<int64_t> seed, bool reshuffle_each_iteration) const {
  return Dataset(MakeShuffle(node_, buffer_size, seed, reshuffle_each_iteration));
}
Dataset Dataset::Repeat(int64_t count) const { return Dataset(MakeRepeat(node_, count)); }
Dataset Dataset::Batch(int64_t batch_size, bool drop_remainder) const {
  return Dataset(MakeBatch(node_, batch_size, drop_remainder));
}
Dataset Dataset::PaddedBatch(int64_t batch_size, const PaddedBatchOptions& options) const {
  return Dataset(MakePaddedBatch(node_, batch_size, options));
}
Dataset Dataset::Unbatch() const { return Dataset(MakeUnbatch(node_)); }
Dataset Dataset::Take(int64_t count) const { return Dataset(MakeTake(node_, count)); }
Dataset Dataset::Skip(int64_t count) const { return Dataset(MakeSkip(node_, count)); }
Dataset Dataset::Shard(int64_t num_shards, int64_t index) const {
  const bool hint = num_shards == kShardHint && index == kShardHint;
  return Dataset(hint ? MakeShardHint(node_) : MakeShard(node_, num_shards, index));
}
Dataset Dataset::Cache(const std::string& filename) const {
  return Dataset(filename.empty() ? MakeMemoryCache(node_) : MakeFileCache(node_, filename));
}
Dataset Dataset::Prefetch(int64_t buffer_size) const { return Dataset(MakePrefetch(node_, buffer_size)); }

Dataset Dataset::Map(std::shared_ptr<const Function> function, const MapOptions& options) const {
  return Dataset(MakeMap(node_, GraphElementFunction(std::move(function), element_spec()), options.num_parallel_calls));
}
Dataset Dataset::Filter(std::shared_ptr<const Function> function) const {
  return Dataset(MakeFilter(node_, GraphElementFunction(std::move(function), element_spec())));
}
Dataset Dataset::TakeWhile(std::shared_ptr<const Function> function) const {
  return Dataset(MakeTakeWhile(node_, GraphElementFunction(std::move(function), element_spec())));
}
Dataset Dataset::FlatMap(std::shared_ptr<const Function> function) const {
  return Interleave(std::move(function), {.cycle_length = 1});
}
Dataset Dataset::Interleave(std::shared_ptr<const Function> function, const InterleaveOptions& options) const {
  return Dataset(MakeInterleave(node_, GraphSlicesFunction(std::move(function), element_spec()), options));
}
Dataset Dataset::Map(const FunctionBody& body, const MapOptions& options) const {
  return Map(FunctionOf("map_fn", element_spec(), body), options);
}
Dataset Dataset::IgnoreErrors(bool log_warning) const { return Dataset(MakeIgnoreErrors(node_, log_warning)); }

Dataset Dataset::Filter(const FunctionBody& body) const {
  return Filter(FunctionOf("filter_fn", element_spec(), body));
}
Dataset Dataset::TakeWhile(const FunctionBody& body) const {
  return TakeWhile(FunctionOf("take_while_fn", element_spec(), body));
}
Dataset Dataset::FlatMap(const FunctionBody& body) const {
  return FlatMap(FunctionOf("flat_map_fn", element_spec(), body));
}
Dataset Dataset::Interleave(const FunctionBody& body, const InterleaveOptions& options) const {
  return Interleave(FunctionOf("interleave_fn", element_spec(), body), options);
}

Dataset Dataset::Map(HostMap function, ElementSpec output_spec, const MapOptions& options) const {
  return Dataset(
      MakeMap(node_, HostElementFunction(std::move(function), std::move(output_spec)), options.num_parallel_calls));
}
Dataset Dataset::Filter(HostPredicate predicate) const {
  return Dataset(MakeFilter(node_, HostPredicateFunction(std::move(predicate), "Filter")));
}
Dataset Dataset::TakeWhile(HostPredicate predicate) const {
  return Dataset(MakeTakeWhile(node_, HostPredicateFunction(std::move(predicate), "TakeWhile")));
}
Dataset Dataset::FlatMap(HostDatasetFunction function, ElementSpec output_spec) const {
  return Interleave(std::move(function), std::move(output_spec), {.cycle_length = 1});
}
Dataset Dataset::Interleave(HostDatasetFunction function, ElementSpec output_spec,
                            const InterleaveOptions& options) const {
  return Dataset(MakeInterleave(node_, HostDatasetsFunction(std::move(function), std::move(output_spec)), options));
}

const ElementSpec& Dataset::element_spec() const { return node_->spec(); }
int64_t Dataset::Cardinality() const { return node_->Cardinality(); }
std::unique_ptr<Iterator> Dataset::MakeIterator(const IteratorOptions& options) const {
  return std::make_unique<Iterator>(node_, options);
}
std::string Dataset::ToString() const { return node_->ToString(); }

}  // namespace cohort::data
