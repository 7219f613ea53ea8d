// Input for replicas: divides datasets of global batches among them, as TensorFlow's strategies do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

// One run over a distributed dataset. The caller owns it. Not thread-safe. If there are several processes, all of them
// must make the same calls.
class COHORT_EXPORT DistributedIterator {
 public:
  DistributedIterator(StrategyPtr strategy, const data::Dataset& dataset, const data::IteratorOptions& options);

  // Replaces *values by the components for each replica of this process. A replica may get batches without rows.
  // Returns false if no replica of any process has data. Throws what a stage of the dataset throws. After such an
  // error in this process, the other processes wait in Next until this process calls Next again, unless the dataset is
  // endless. If this process ends instead, they throw UnavailableError. Throws also what WorkerMeeting's calls throw.
  // Throws InvalidArgumentError if a replica without data would need a batch of an unknown shape.
  bool Next(PerReplica<std::vector<Tensor>>* values);

 private:
  const StrategyPtr strategy_;
  const bool endless_;
  const std::unique_ptr<data::Iterator> iterator_;
  bool met_ = false;          // true after the first meeting with the other processes
  std::vector<Tensor> last_;  // the last element; a batch without rows gets its shapes
};

// A dataset that is divided among the replicas of a strategy, as this process reads it. Immutable and cheap to copy.
class COHORT_EXPORT DistributedDataset {
 public:
  DistributedDataset(StrategyPtr strategy, data::Dataset dataset)
      : strategy_(std::move(strategy)), dataset_(std::move(dataset)) {}
  std::unique_ptr<DistributedIterator> MakeIterator(const data::IteratorOptions& options = {}) const {
    return std::make_unique<DistributedIterator>(strategy_, dataset_, options);
  }
  const data::ElementSpec& element_spec() const { return dataset_.element_spec(); }
  const StrategyPtr& strategy() const { return strategy_; }

 private:
  StrategyPtr strategy_;
  data::Dataset dataset_;  // yields one batch for each replica of this process, in turn
};

// Divides `dataset` among all replicas (see PartOfProcess). `dataset` must yield global batches, and every process must
// describe it in the same way. All processes make the call together. Shuffles without a seed take the chief's seeds
// (WithSeedsOfChief). With kOff these shuffles keep their own seeds, so each process reads all data in an order of its
// own. Throws what data::AutoShard and WithSeedsOfChief throw.
COHORT_EXPORT DistributedDataset DistributeDataset(const StrategyPtr& strategy, const data::Dataset& dataset,
                                                   data::AutoShardPolicy policy = data::AutoShardPolicy::kAuto);

// Facts for a function that makes the input of one process.
struct COHORT_EXPORT InputContext {
  int num_input_pipelines = 1;  // number of processes
  // The number of this process, from 0.
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;  // number of replicas of all processes
  // Throws InvalidArgumentError if the replicas cannot share the batch equally.
  int64_t GetPerReplicaBatchSize(int64_t global_batch_size) const;
};
// Calls `make` once, in this process, and returns its dataset for the replicas of this process. The dataset must yield
// batches for one replica. It is not divided.
COHORT_EXPORT DistributedDataset DistributeDatasetsFromFunction(
    const StrategyPtr& strategy, const std::function<data::Dataset(const InputContext&)>& make);

// The part of a dataset of global batches that one process reads.
struct COHORT_EXPORT InputPart {
  data::Dataset dataset;  // yields one batch for each replica of this process, in turn
  // True if several processes divide each global batch among them. All of them then have to read the same data in the
  // same order.
  bool of_common_batches = false;
};
// Returns the part of the data that this process reads. With one process, this is all data. With several processes,
// `policy` decides:
// - kData, and kAuto if AutoShard cannot divide the dataset by files: each global batch is cut into a piece of
//   ceil(rows / replicas) rows for each replica of all processes. Worker i of n gets each piece j with j mod n == i.
// - kFile, and kAuto if AutoShard can divide the dataset by files: the process reads files of its own.
// - kHint: the process reads everything, but a stage Shard(kShardHint, kShardHint) of the dataset becomes Shard(n, i)
//   in process i of n.
// - kOff: the process reads everything.
// With one process, and in each case of this list but the first, the batches that the process reads are cut into
// smaller batches. Each of these has as many rows as one replica needs in one step (data::RebatchSizes). If the size of
// a global batch is not known, each batch is cut into pieces of ceil(rows / replicas) rows.
COHORT_EXPORT InputPart PartOfProcess(const Strategy& strategy, const data::Dataset& dataset,
                                      data::AutoShardPolicy policy);

// Returns the dataset with the seeds that the chief has drawn for shuffles without a seed. These shuffles then have the
// same order in all processes and in every epoch. All processes make the call together; one process alone gets the
// dataset unchanged. Shuffles inside the datasets that an Interleave's function makes keep their own seeds. Throws
// WorkersDisagreeError if another process has another number of shuffles without a seed. Throws what
// WorkerMeeting::Gather throws.
COHORT_EXPORT data::Dataset WithSeedsOfChief(const Strategy& strategy, const data::Dataset& dataset);

// Returns the rows of a global batch that each replica of this process gets (Strategy::RowsOf). The tensors share the
// batch's bytes.
COHORT_EXPORT PerReplica<std::vector<Tensor>> RowsOfReplicas(const Strategy& strategy,
                                                             const std::vector<Tensor>& global_batch);

// Replaces the empty lists of `values` by batches without rows. The new batches have the shapes and dtypes of another
// replica's batch, or those of `spec` if no replica has a batch. Throws InvalidArgumentError, whose message begins with
// `caller`, if `spec` is needed and has an unknown dimension other than the first.
COHORT_EXPORT void FillWithoutRows(PerReplica<std::vector<Tensor>>* values, const data::ElementSpec& spec,
                                   const std::string& caller);

}  // namespace cohort::distribute
