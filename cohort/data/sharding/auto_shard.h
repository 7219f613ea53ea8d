// How the input of one program is divided among workers and replicas: TensorFlow's auto-shard policies and its two ways
// to cut global batches to those of replicas. Functions of descriptions; docs/data.md has examples.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// The values are TensorFlow's.
enum class AutoShardPolicy {
  kOff = -1,  // every worker sees everything
  kAuto = 0,  // kFile where that is possible, else kData, with a warning
  kFile = 1,  // worker i reads the files j with j mod n == i
  kData = 2,  // worker i takes the elements j with j mod n == i
  kHint = 3,  // only Shard(kShardHint, kShardHint) is replaced, by Shard(n, i)
};

// Both arguments of a Shard that AutoShard with kHint replaces.
inline constexpr int64_t kShardHint = -1;

// The part of worker `index` of `num_workers`. kFile puts a Shard on the names of files of each reader that the stages
// above pass through to, and moves shuffles of the names behind it. An Interleave whose function makes readers gets the
// Shard on its input. An Interleave or reader that takes what another one makes directly of tensors is TensorFlow's
// exception: that is shared out then, element by element. A worker whose shard is empty gets an error from the
// iterator. With one worker only hints are replaced.
// A function of the host tells by the first element of its Interleave's input: kFile and kAuto take that (past Shuffle,
// Prefetch and Cache), call the function with it, and throw what either throws.
// Throws InvalidArgumentError for an index that is none, FailedPreconditionError where kFile finds no reader, or no
// element to call such a function with.
COHORT_EXPORT Dataset AutoShard(const Dataset& dataset, int64_t num_workers, int64_t index,
                                AutoShardPolicy policy = AutoShardPolicy::kAuto);

// Returns what kAuto gives a worker if there are files to share: its part by kFile. Returns nullopt, with a warning
// that says why, if kAuto comes to kData. Throws as AutoShard, but not for the lack of a reader.
COHORT_EXPORT std::optional<Dataset> AutoShardFiles(const Dataset& dataset, int64_t num_workers, int64_t index);

// Rows of the batches that `dataset` yields, by its spec or its last Batch; -1 where they are not known.
COHORT_EXPORT int64_t StaticBatchSize(const Dataset& dataset);

// The sizes that Rebatch cycles through on `worker` for a global batch of `batch_size`, with `replicas` on each of
// `workers`: the first replicas get the larger parts, and each worker begins with its own.
// Batch 7, 2 workers, 2 replicas: [2,2,2,1] and [2,1,2,2]. Each step takes `replicas` of them.
COHORT_EXPORT std::vector<int64_t> RebatchSizes(int64_t batch_size, int64_t workers, int64_t replicas, int64_t worker);

// The rows of `dataset`'s batches, cut anew to the sizes in turn; a size of 0 gives a batch without rows. The last
// batch may be shorter. Throws InvalidArgumentError for sizes that are empty, negative or all 0, and for a dataset that
// is not batched.
COHORT_EXPORT Dataset Rebatch(const Dataset& dataset, std::vector<int64_t> sizes);

// Each batch cut into `replicas` parts of ceil(rows / replicas) rows; the last ones may be shorter or have none (4 rows
// to 3 replicas: 2, 2, 0). For kData, where it keeps what a shard is independent of the cut.
COHORT_EXPORT Dataset LegacyRebatch(const Dataset& dataset, int64_t replicas);

}  // namespace cohort::data
