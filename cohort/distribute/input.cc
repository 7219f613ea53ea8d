#include "cohort/distribute/input.h"

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/worker_meeting.h"

namespace cohort::distribute {

DistributedIterator::DistributedIterator(StrategyPtr strategy, const data::Dataset& dataset,
                                         const data::IteratorOptions& options)
    : strategy_(std::move(strategy)),
      endless_(dataset.Cardinality() == data::kInfiniteCardinality),
      iterator_(dataset.MakeIterator(options)) {}

bool DistributedIterator::Next(PerReplica<std::vector<Tensor>>* values) {
  // Whose reading fails has met the others by then, so that they do not wait for one who never came.
  if (!met_ && !endless_) strategy_->meeting().Barrier();
  met_ = true;
  values->clear();
  bool has_data = false;
  for (int r = 0; r < strategy_->num_local_replicas(); ++r) {
    std::vector<Tensor> element;
    if (iterator_->Next(&element)) {
      has_data = true;
      last_ = element;
    } else {
      element.clear();
    }
    values->push_back(std::move(element));
  }
  if (!endless_) has_data = strategy_->meeting().Any(has_data);
  if (!has_data) return false;
  for (std::vector<Tensor>& element : *values) {
    if (element.empty()) element = WithoutRows();
  }
  return true;
}

std::vector<Tensor> DistributedIterator::WithoutRows() const {
  std::vector<Tensor> element;
  for (const Tensor& seen : last_) element.push_back(seen.Slice(0, 0));
  if (!element.empty()) return element;
  return data::WithoutRows(iterator_->element_spec(), "[distribute]");
}

int64_t InputContext::GetPerReplicaBatchSize(int64_t global_batch_size) const {
  if (global_batch_size % num_replicas_in_sync == 0) return global_batch_size / num_replicas_in_sync;
  throw InvalidArgumentError(StrCat("[distribute] expected a global batch that ", num_replicas_in_sync,
                                    " replicas can share equally; got ", global_batch_size));
}

std::optional<data::Dataset> PartOfProcess(const Strategy& strategy, const data::Dataset& dataset,
                                           data::AutoShardPolicy policy) {
  if (policy == data::AutoShardPolicy::kHint) {
    return data::AutoShard(dataset, strategy.num_workers(), strategy.worker(), policy);
  }
  if (strategy.num_workers() == 1 || policy == data::AutoShardPolicy::kData) return std::nullopt;
  const bool automatic = policy == data::AutoShardPolicy::kAuto;
  try {
    return data::AutoShard(dataset, strategy.num_workers(), strategy.worker(),
                           automatic ? data::AutoShardPolicy::kFile : policy);
  } catch (const FailedPreconditionError& error) {
    if (!automatic) throw;
    LogWarning("distribute", "AUTO sharding policy will apply DATA sharding policy as it failed to apply FILE ",
               "sharding policy because of the following reason: ", error.what());
    return std::nullopt;
  }
}

DistributedDataset DistributeDataset(const StrategyPtr& strategy, const data::Dataset& dataset,
                                     data::AutoShardPolicy policy) {
  const int64_t replicas = strategy->num_local_replicas();
  const std::optional<data::Dataset> part = PartOfProcess(*strategy, dataset, policy);
  if (strategy->num_workers() > 1 && !part) {
    const data::Dataset parts = data::LegacyRebatch(dataset, strategy->num_replicas_in_sync());
    return DistributedDataset(
        strategy, data::AutoShard(parts, strategy->num_workers(), strategy->worker(), data::AutoShardPolicy::kData));
  }
  const data::Dataset& source = part ? *part : dataset;
  if (strategy->num_replicas_in_sync() == 1) return DistributedDataset(strategy, source);
  const int64_t batch = data::StaticBatchSize(dataset);
  if (batch < 0) return DistributedDataset(strategy, data::LegacyRebatch(source, strategy->num_replicas_in_sync()));
  const std::vector<int64_t> sizes = data::RebatchSizes(batch, strategy->num_workers(), replicas, strategy->worker());
  return DistributedDataset(strategy, data::Rebatch(source, sizes));
}

DistributedDataset DistributeDatasetsFromFunction(const StrategyPtr& strategy,
                                                  const std::function<data::Dataset(const InputContext&)>& make) {
  return DistributedDataset(strategy, make({.num_input_pipelines = strategy->num_workers(),
                                            .input_pipeline_id = strategy->worker(),
                                            .num_replicas_in_sync = strategy->num_replicas_in_sync()}));
}

}  // namespace cohort::distribute
