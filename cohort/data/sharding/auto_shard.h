// Divides the input of one program among workers and replicas: TensorFlow's auto-shard policies, and its two ways of
// cutting global batches into batches of replicas. All functions take and return descriptions. docs/data.md has
// examples.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// The values are TensorFlow's. Worker `i` of `n` gets:
enum class AutoShardPolicy {
  kOff = -1,  // everything
  kAuto = 0,  // its part by kFile if that is possible, else by kData, with a warning
  kFile = 1,  // the files j with j mod n == i
  kData = 2,  // the elements j with j mod n == i
  kHint = 3,  // everything, but Shard(kShardHint, kShardHint) becomes Shard(n, i)
};

// If both arguments of a Shard have this value, AutoShard with kHint replaces them.
inline constexpr int64_t kShardHint = -1;

// Returns the part of worker `index` of `num_workers`. With one worker, all policies but kHint return `dataset`.
// kFile starts at the last stage and goes back through stages such as Batch, Map and Zip, until it finds stages that
// read files (readers).
// - A reader gets a Shard on its file names. Shuffles of the names then come after the Shard.
// - An Interleave whose function makes readers gets the Shard on its input.
// - There is one exception, as in TensorFlow. Assume that the stages A and B are readers or Interleaves, that A gets
//   its elements from B, and that the input of B is FromTensors or FromTensorSlices. Then kFile does not divide the
//   input of B. It divides the elements that B yields.
// If the function of an Interleave is a function of the host, AutoShard with kFile or kAuto calls the function with the
// first element of the Interleave's input, to see if it makes readers. AutoShard reads this element without the stages
// Shuffle, Prefetch and Cache, and throws the errors of this reading and of the function.
// If there are several workers and a Shard of AutoShard leaves nothing to this worker, Next of the worker's iterator
// throws InvalidArgumentError when it first reads from that Shard.
// Throws InvalidArgumentError for an invalid index. With kFile, throws FailedPreconditionError if there is no reader,
// or no first element for a function of the host; with kAuto, logs this error and continues with kData.
COHORT_EXPORT Dataset AutoShard(const Dataset& dataset, int64_t num_workers, int64_t index,
                                AutoShardPolicy policy = AutoShardPolicy::kAuto);

// Returns the part by kFile if kAuto would choose kFile. Otherwise, that is if AutoShard with kFile throws
// FailedPreconditionError, logs a warning with the reason and returns nullopt. Throws the other errors of AutoShard.
COHORT_EXPORT std::optional<Dataset> AutoShardFiles(const Dataset& dataset, int64_t num_workers, int64_t index);

// Returns the number of rows of the batches that `dataset` yields, from its spec or its last Batch. Returns -1 if it is
// not known.
COHORT_EXPORT int64_t StaticBatchSize(const Dataset& dataset);

// Returns the sizes that Rebatch uses in turn on `worker`. There are `workers` workers with `replicas` replicas each.
// The input of each worker yields batches of `batch_size` rows, the size of a global batch. In a step, each worker uses
// the next `replicas` sizes of its list, so all workers together use `batch_size` rows in each step.
// The sizes of a list differ by at most one. Worker 0's list begins with the larger sizes. Worker i's list is that of
// worker 0, rotated to the left by i * replicas places.
// Example: batch 7, 2 workers with 2 replicas: [2,2,2,1] for worker 0 and [2,1,2,2] for worker 1.
COHORT_EXPORT std::vector<int64_t> RebatchSizes(int64_t batch_size, int64_t workers, int64_t replicas, int64_t worker);

// Cuts the rows of `dataset`'s batches anew into batches of `sizes`, used in turn. A size of 0 gives a batch without
// rows. The last batch may be shorter. Throws InvalidArgumentError if `sizes` is empty, has a negative number or only
// zeros, or if `dataset` is not batched.
COHORT_EXPORT Dataset Rebatch(const Dataset& dataset, std::vector<int64_t> sizes);

// Cuts each batch into `replicas` parts of ceil(rows / replicas) rows. The last parts may be shorter or empty: 4 rows
// for 3 replicas give 2, 2, 0. Strategies use it before AutoShard with kData, so that each worker gets whole parts.
// They also use it if the size of a global batch is not known.
COHORT_EXPORT Dataset LegacyRebatch(const Dataset& dataset, int64_t replicas);

}  // namespace cohort::data
