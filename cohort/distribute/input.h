// Input for replicas: datasets of global batches divided among them, as TensorFlow's strategies do it.
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

// One run over a distributed dataset. Not thread-safe. With several processes each of them makes the same calls.
class COHORT_EXPORT DistributedIterator {
 public:
  DistributedIterator(StrategyPtr strategy, const data::Dataset& dataset, const data::IteratorOptions& options);

  // Replaces *values by the components of each replica of this process; a replica may get batches without rows. Returns
  // false when no replica of any process has data. Throws what a stage throws; the other processes then wait for this
  // one until it calls Next again or ends, and get UnavailableError if it ends. Throws InvalidArgumentError if a
  // replica without data would need a batch of an unknown shape.
  bool Next(PerReplica<std::vector<Tensor>>* values);

 private:
  const StrategyPtr strategy_;
  const bool endless_;
  const std::unique_ptr<data::Iterator> iterator_;
  bool met_ = false;          // the other processes
  std::vector<Tensor> last_;  // what rows look like
};

// Cheap to copy.
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
  data::Dataset dataset_;  // of this process, in the batches of its replicas in turn
};

// Divides `dataset`, which yields global batches and is described alike in every process, among all replicas as
// TensorFlow does (PartOfProcess). All processes make the call together: shuffles without a seed take the chief's
// (WithSeedsOfChief), unless each process reads everything (kOff) in an order of its own. Throws what data::AutoShard
// and WithSeedsOfChief throw.
COHORT_EXPORT DistributedDataset DistributeDataset(const StrategyPtr& strategy, const data::Dataset& dataset,
                                                   data::AutoShardPolicy policy = data::AutoShardPolicy::kAuto);

// What a function that makes the input of one process may know.
struct COHORT_EXPORT InputContext {
  int num_input_pipelines = 1;  // processes
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;
  // Throws InvalidArgumentError where the replicas cannot share the batch equally.
  int64_t GetPerReplicaBatchSize(int64_t global_batch_size) const;
};
// `make` yields batches of one replica; nothing is divided.
COHORT_EXPORT DistributedDataset DistributeDatasetsFromFunction(
    const StrategyPtr& strategy, const std::function<data::Dataset(const InputContext&)>& make);

// What one process reads of a dataset of global batches.
struct COHORT_EXPORT InputPart {
  data::Dataset dataset;  // The batches of this process's replicas, in turn.
  // Whether the processes divide each global batch among them. Then all of them have to read the same data in the same
  // order.
  bool of_common_batches = false;
};
// Returns this process's part. kData, and kAuto if there are no files to share: each global batch is cut into one part
// of ceil(rows / replicas) rows for each replica of all processes, and worker i of n gets the parts j with j mod n ==
// i. kFile: files of its own; kHint: what Shard(hint) leaves to it; kOff: everything; of these the rows are cut to the
// replicas' sizes (data::RebatchSizes), or each batch into equal parts if the size of a global batch is not known.
COHORT_EXPORT InputPart PartOfProcess(const Strategy& strategy, const data::Dataset& dataset,
                                      data::AutoShardPolicy policy);

// Returns the dataset with the seeds that the chief has drawn for shuffles without a seed, so that such shuffles have
// one order at all processes, in every epoch. All processes make the call together. Shuffles of datasets that the
// function of an Interleave makes keep their own. Throws WorkersDisagreeError if another process has another number of
// such shuffles, and what WorkerMeeting::Gather throws.
COHORT_EXPORT data::Dataset WithSeedsOfChief(const Strategy& strategy, const data::Dataset& dataset);

// Returns the rows of a global batch that each replica of this process takes (Strategy::RowsOf). The tensors share the
// batch's bytes.
COHORT_EXPORT PerReplica<std::vector<Tensor>> RowsOfReplicas(const Strategy& strategy,
                                                             const std::vector<Tensor>& global_batch);

// Gives batches without rows to replicas that have none (empty lists): like those of another replica, or, if none has
// data, like `spec` says. Throws InvalidArgumentError, which begins with `caller`, if the spec does not tell the
// shapes.
COHORT_EXPORT void FillWithoutRows(PerReplica<std::vector<Tensor>>* values, const data::ElementSpec& spec,
                                   const std::string& caller);

}  // namespace cohort::distribute
