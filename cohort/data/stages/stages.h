// The functions that make stages. dataset.h says what the stages do. Each function throws InvalidArgumentError for
// invalid parameters. A comment above a group of functions names the file in which they
// are defined.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/data/element_function.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {

// Throws InvalidArgumentError "[data] expected WHAT; got VALUE" unless `ok`.
void CheckParameter(bool ok, const char* expected, int64_t got);

// source_stages.cc
NodePtr MakeSlices(std::vector<Tensor> tensors);
NodePtr MakeTensors(std::vector<Tensor> tensors);
NodePtr MakeRange(int64_t start, int64_t stop, int64_t step);
// generator_stage.cc
NodePtr MakeGenerator(HostGenerator generator, ElementSpec output_spec);
// ../readers/idx_dataset.cc. MakeIdx reads the files before it returns.
NodePtr MakeIdx(std::vector<std::string> paths);
// join_stages.cc
NodePtr MakeZip(std::vector<NodePtr> inputs);
NodePtr MakeConcatenate(NodePtr first, NodePtr second);
// shuffle_stage.cc. `drawn_seed`: for a shuffle without `seed`. If both are absent, the stage draws a seed.
NodePtr MakeShuffle(const NodePtr& input, int64_t buffer_size, std::optional<int64_t> seed,
                    bool reshuffle_each_iteration, std::optional<uint64_t> drawn_seed = std::nullopt);
// repeat_stage.cc
NodePtr MakeRepeat(NodePtr input, int64_t count);
// batch_stage.cc
NodePtr MakeBatch(NodePtr input, int64_t batch_size, bool drop_remainder);
NodePtr MakePaddedBatch(NodePtr input, int64_t batch_size, const PaddedBatchOptions& options);
// unbatch_stage.cc
NodePtr MakeUnbatch(NodePtr input);
NodePtr MakeLegacyRebatch(NodePtr input, int64_t replicas);
// rebatch_stage.cc
NodePtr MakeRebatch(NodePtr input, std::vector<int64_t> sizes);
// subset_stages.cc
NodePtr MakeTake(NodePtr input, int64_t count);
NodePtr MakeSkip(NodePtr input, int64_t count);
// A place for AutoShard with kHint to put a Shard. The stage itself cannot run.
NodePtr MakeShardHint(NodePtr input);
// `require_non_empty`: the first Next throws if the shard has no elements.
NodePtr MakeShard(NodePtr input, int64_t num_shards, int64_t index, bool require_non_empty = false);
// cache_stage.cc, file_cache_stage.cc
NodePtr MakeMemoryCache(NodePtr input);
NodePtr MakeFileCache(NodePtr input, const std::string& filename);
// prefetch_stage.cc
NodePtr MakePrefetch(NodePtr input, int64_t buffer_size);
// map_stage.cc
NodePtr MakeMap(const NodePtr& input, std::shared_ptr<const ElementFunction> function, int num_parallel_calls);
// filter_stage.cc. The function must return one bool scalar.
NodePtr MakeFilter(NodePtr input, std::shared_ptr<const ElementFunction> predicate);
NodePtr MakeTakeWhile(NodePtr input, std::shared_ptr<const ElementFunction> predicate);
NodePtr MakeIgnoreErrors(const NodePtr& input, bool log_warning);
// interleave_stage.cc
NodePtr MakeInterleave(NodePtr input, std::shared_ptr<const DatasetFunction> function,
                       const InterleaveOptions& options);
// If `node` is an Interleave, returns its function, which lives as long as the node. Otherwise returns null.
const DatasetFunction* InterleaveFunction(const DatasetNode& node);

}  // namespace cohort::data
