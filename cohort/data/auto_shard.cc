#include "cohort/data/auto_shard.h"

#include <algorithm>
#include <array>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/file_format.h"
#include "cohort/data/stages.h"

namespace cohort::data {
namespace {

struct Worker {
  int64_t count, index;
};

// Stages through which FILE goes on to their input; of Zip and Concatenate to all inputs.
constexpr std::array kPassThrough = {"Batch",  "Cache", "Concatenate", "Filter", "Map",  "Prefetch", "Rebatch",
                                     "Repeat", "Shard", "Shuffle",     "Skip",   "Take", "Unbatch",  "Zip"};
// Stages that keep the rows of batches.
constexpr std::array kKeepRows = {"Cache", "Filter",    "Prefetch", "Repeat", "Shard",
                                  "Skip",  "ShardHint", "Shuffle",  "Take"};

template <typename Kinds>
bool IsOneOf(const DatasetNode& node, const Kinds& kinds) {
  return std::find(kinds.begin(), kinds.end(), node.kind()) != kinds.end();
}

// `node` without the shuffles in it, which are appended to `shuffles`, the outermost first.
NodePtr WithoutShuffles(const NodePtr& node, std::vector<NodePtr>* shuffles) {
  if (node->inputs().empty()) return node;
  if (node->kind() == "Shuffle") {
    shuffles->push_back(node);
    return WithoutShuffles(node->input(), shuffles);
  }
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs()) inputs.push_back(WithoutShuffles(input, shuffles));
  return node->WithInputs(std::move(inputs));
}

NodePtr ShardFiles(const NodePtr& node, const Worker& worker) {
  if (IsReader(*node)) {
    std::vector<NodePtr> shuffles;
    NodePtr files = WithoutShuffles(node->input(), &shuffles);
    files = MakeShard(std::move(files), worker.count, worker.index, /*require_non_empty=*/true);
    for (auto shuffle = shuffles.rbegin(); shuffle != shuffles.rend(); ++shuffle)
      files = (*shuffle)->WithInputs({files});
    return node->WithInputs({std::move(files)});
  }
  if (!IsOneOf(*node, kPassThrough)) {
    throw FailedPreconditionError(StrCat("[data] Found an unshardable source dataset: ", node->ToString(),
                                         "; expected a reader of files (TextLine, TFRecord, Csv)"));
  }
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs()) inputs.push_back(ShardFiles(input, worker));
  return node->WithInputs(std::move(inputs));
}

NodePtr ReplaceHints(const NodePtr& node, const Worker& worker) {
  if (node->inputs().empty()) return node;
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs()) inputs.push_back(ReplaceHints(input, worker));
  if (node->kind() == "ShardHint") return MakeShard(inputs.front(), worker.count, worker.index);
  return inputs == node->inputs() ? node : node->WithInputs(std::move(inputs));
}

NodePtr ShardData(const NodePtr& node, const Worker& worker) {
  return MakeShard(node, worker.count, worker.index, /*require_non_empty=*/true);
}

NodePtr ShardAuto(const NodePtr& node, const Worker& worker) {
  try {
    return ShardFiles(node, worker);
  } catch (const FailedPreconditionError& error) {
    LogWarning(
        "data",
        "AUTO sharding policy will apply DATA sharding policy as it failed to apply FILE sharding policy because "
        "of the following reason: ",
        error.what());
    return ShardData(node, worker);
  }
}

}  // namespace

Dataset AutoShard(const Dataset& dataset, int64_t num_workers, int64_t index, AutoShardPolicy policy) {
  CheckParameter(num_workers >= 1, "at least one worker", num_workers);
  if (index < 0 || index >= num_workers) {
    throw InvalidArgumentError(
        StrCat("[data] expected the index of a worker from 0 to ", num_workers - 1, "; got ", index));
  }
  const Worker worker{num_workers, index};
  if (policy == AutoShardPolicy::kHint) return Dataset(ReplaceHints(dataset.node(), worker));
  if (num_workers == 1) return dataset;
  switch (policy) {
    case AutoShardPolicy::kOff: return dataset;
    case AutoShardPolicy::kFile: return Dataset(ShardFiles(dataset.node(), worker));
    case AutoShardPolicy::kData: return Dataset(ShardData(dataset.node(), worker));
    default: return Dataset(ShardAuto(dataset.node(), worker));
  }
}

int64_t StaticBatchSize(const Dataset& dataset) {
  const ElementSpec& spec = dataset.element_spec();
  if (!spec.empty() && spec[0].shape.rank() >= 1 && spec[0].shape.dim(0) >= 0) return spec[0].shape.dim(0);
  const DatasetNode* node = dataset.node().get();
  while (node->batch_size() < 0 && IsOneOf(*node, kKeepRows)) node = node->input().get();
  return node->batch_size();
}

std::vector<int64_t> RebatchSizes(int64_t batch_size, int64_t workers, int64_t replicas, int64_t worker) {
  CheckParameter(batch_size >= 1, "a global batch of at least 1", batch_size);
  CheckParameter(workers >= 1, "at least one worker", workers);
  CheckParameter(replicas >= 1, "at least one replica on each worker", replicas);
  CheckParameter(worker >= 0 && worker < workers, "the index of a worker", worker);
  const int64_t all = workers * replicas;
  std::vector<int64_t> sizes(static_cast<size_t>(all), batch_size / all);
  for (int64_t i = 0; i < batch_size % all; ++i) ++sizes[static_cast<size_t>(i)];
  std::rotate(sizes.begin(), sizes.begin() + worker * replicas, sizes.end());
  return sizes;
}

Dataset Rebatch(const Dataset& dataset, std::vector<int64_t> sizes) {
  return Dataset(MakeRebatch(dataset.node(), std::move(sizes)));
}

Dataset LegacyRebatch(const Dataset& dataset, int64_t replicas) {
  return Dataset(MakeLegacyRebatch(dataset.node(), replicas));
}

}  // namespace cohort::data
