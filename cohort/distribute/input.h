// Input for replicas: datasets of global batches divided among them, as TensorFlow's strategies do it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

// One run over a distributed dataset. Not thread-safe. With several processes each of them makes the same calls.
class DistributedIterator {
 public:
  DistributedIterator(StrategyPtr strategy, const data::Dataset& dataset, const data::IteratorOptions& options);

  // Replaces *values by the components of each replica of this process; a replica may get batches without rows. False
  // when no replica of any process has data. Throws what a stage throws - the other processes go on waiting for this
  // one until it calls Next again or ends, and get UnavailableError then -, and InvalidArgumentError where a replica
  // without data would need a batch of an unknown shape.
  bool Next(PerReplica<std::vector<Tensor>>* values);

 private:
  std::vector<Tensor> WithoutRows() const;

  const StrategyPtr strategy_;
  const bool endless_;
  const std::unique_ptr<data::Iterator> iterator_;
  bool met_ = false;          // the other processes
  std::vector<Tensor> last_;  // what rows look like
};

// Cheap to copy.
class DistributedDataset {
 public:
  DistributedDataset(StrategyPtr strategy, data::Dataset dataset)
      : strategy_(std::move(strategy)), dataset_(std::move(dataset)) {}
  std::unique_ptr<DistributedIterator> MakeIterator(const data::IteratorOptions& options = {}) const {
    return std::make_unique<DistributedIterator>(strategy_, dataset_, options);
  }
  const data::ElementSpec& element_spec() const { return dataset_.element_spec(); }

 private:
  StrategyPtr strategy_;
  data::Dataset dataset_;  // of this process, in the batches of its replicas in turn
};

// `dataset` yields global batches, the same ones in every process. Each replica gets its part of every batch; the
// processes read all of it (kData), or files of their own (kFile), or each everything (kOff). Throws as
// data::AutoShard.
DistributedDataset DistributeDataset(const StrategyPtr& strategy, const data::Dataset& dataset,
                                     data::AutoShardPolicy policy = data::AutoShardPolicy::kAuto);

// What a function that makes the input of one process may know.
struct InputContext {
  int num_input_pipelines = 1;  // processes
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;
  // Throws InvalidArgumentError where the replicas cannot share the batch equally.
  int64_t GetPerReplicaBatchSize(int64_t global_batch_size) const;
};
// `make` yields batches of one replica; nothing is divided.
DistributedDataset DistributeDatasetsFromFunction(const StrategyPtr& strategy,
                                                  const std::function<data::Dataset(const InputContext&)>& make);

// Where processes do not all read the same batches: this one's part. None: each takes its rows of every batch (kData,
// and kAuto with a warning where there are no files to share). With one process there is nothing to share; hints alone
// are replaced (kHint).
std::optional<data::Dataset> PartOfProcess(const Strategy& strategy, const data::Dataset& dataset,
                                           data::AutoShardPolicy policy);

}  // namespace cohort::distribute
