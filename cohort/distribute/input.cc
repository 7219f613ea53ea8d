#include "cohort/distribute/input.h"

#include <iterator>
#include <optional>
#include <sstream>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/drawn_seeds.h"
#include "cohort/distribute/worker_meeting.h"

namespace cohort::distribute {

DistributedIterator::DistributedIterator(StrategyPtr strategy, const data::Dataset& dataset,
                                         const data::IteratorOptions& options)
    : strategy_(std::move(strategy)),
      endless_(dataset.Cardinality() == data::kInfiniteCardinality),
      iterator_(dataset.MakeIterator(options)) {}

bool DistributedIterator::Next(PerReplica<std::vector<Tensor>>* values) {
  // If reading fails in a process, it has met the others before. So they do not wait for it as for a process that has
  // never come.
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
  if (values->front().empty() && !last_.empty()) {
    for (const Tensor& seen : last_) values->front().push_back(seen.Slice(0, 0));
  }
  FillWithoutRows(values, iterator_->element_spec(), "[distribute]");
  return true;
}

int64_t InputContext::GetPerReplicaBatchSize(int64_t global_batch_size) const {
  if (global_batch_size % num_replicas_in_sync == 0) return global_batch_size / num_replicas_in_sync;
  throw InvalidArgumentError(StrCat("[distribute] expected a global batch that ", num_replicas_in_sync,
                                    " replicas can share equally; got ", global_batch_size));
}

InputPart PartOfProcess(const Strategy& strategy, const data::Dataset& dataset, data::AutoShardPolicy policy) {
  const int workers = strategy.num_workers(), worker = strategy.worker();
  const int replicas = strategy.num_replicas_in_sync();
  std::optional<data::Dataset> part;
  if (workers > 1 && policy == data::AutoShardPolicy::kAuto) {
    part = data::AutoShardFiles(dataset, workers, worker);
  } else if (workers == 1 || policy != data::AutoShardPolicy::kData) {
    part = data::AutoShard(dataset, workers, worker, policy);
  }
  if (!part) {
    const data::Dataset parts = data::LegacyRebatch(dataset, replicas);
    return {data::AutoShard(parts, workers, worker, data::AutoShardPolicy::kData), /*of_common_batches=*/true};
  }
  if (replicas == 1) return {*part};
  const int64_t batch = data::StaticBatchSize(dataset);
  if (batch < 0) return {data::LegacyRebatch(*part, replicas)};
  return {data::Rebatch(*part, data::RebatchSizes(batch, workers, strategy.num_local_replicas(), worker))};
}

data::Dataset WithSeedsOfChief(const Strategy& strategy, const data::Dataset& dataset) {
  if (strategy.num_workers() == 1) return dataset;
  std::vector<std::vector<uint64_t>> drawn;  // by worker
  for (const std::string& text : strategy.meeting().Gather(StrJoin(data::DrawnSeeds(dataset), " "))) {
    std::istringstream in(text);
    drawn.emplace_back(std::istream_iterator<uint64_t>(in), std::istream_iterator<uint64_t>());
  }
  for (size_t worker = 1; worker < drawn.size(); ++worker) {
    if (drawn[worker].size() == drawn[0].size()) continue;
    throw WorkersDisagreeError(StrCat("[distribute] expected as many shuffles without a seed at all workers; got ",
                                      drawn[0].size(), " at ", strategy.meeting().Describe(0), " and ",
                                      drawn[worker].size(), " at ",
                                      strategy.meeting().Describe(static_cast<int>(worker)), "; this worker reads ",
                                      dataset.ToString(), "; describe the data alike"));
  }
  return data::WithDrawnSeeds(dataset, drawn[0]);
}

PerReplica<std::vector<Tensor>> RowsOfReplicas(const Strategy& strategy, const std::vector<Tensor>& global_batch) {
  const int replicas = strategy.num_replicas_in_sync();
  if (replicas == 1) return {global_batch};
  PerReplica<std::vector<Tensor>> parts;
  for (int r = 0; r < strategy.num_local_replicas(); ++r) {
    std::vector<Tensor> part;
    for (const Tensor& tensor : global_batch) {
      const auto [begin, end] = Strategy::RowsOf(tensor.shape().dim(0), strategy.first_replica() + r, replicas);
      part.push_back(tensor.Slice(begin, end));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

void FillWithoutRows(PerReplica<std::vector<Tensor>>* values, const data::ElementSpec& spec,
                     const std::string& caller) {
  std::vector<Tensor> none;
  for (const std::vector<Tensor>& seen : *values) {
    if (seen.empty()) continue;
    for (const Tensor& tensor : seen) none.push_back(tensor.Slice(0, 0));
    break;
  }
  for (std::vector<Tensor>& missing : *values) {
    if (!missing.empty()) continue;
    if (none.empty()) none = data::WithoutRows(spec, caller);
    missing = none;
  }
}

DistributedDataset DistributeDataset(const StrategyPtr& strategy, const data::Dataset& dataset,
                                     data::AutoShardPolicy policy) {
  const data::Dataset agreed = policy == data::AutoShardPolicy::kOff ? dataset : WithSeedsOfChief(*strategy, dataset);
  return DistributedDataset(strategy, PartOfProcess(*strategy, agreed, policy).dataset);
}

DistributedDataset DistributeDatasetsFromFunction(const StrategyPtr& strategy,
                                                  const std::function<data::Dataset(const InputContext&)>& make) {
  return DistributedDataset(strategy, make({.num_input_pipelines = strategy->num_workers(),
                                            .input_pipeline_id = strategy->worker(),
                                            .num_replicas_in_sync = strategy->num_replicas_in_sync()}));
}

}  // namespace cohort::distribute
