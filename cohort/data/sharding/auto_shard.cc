// AutoShard rewrites a description. For kFile, ShardFiles walks from the last stage to the sources. It puts a Shard on
// the input of each reader, or of each Interleave whose function makes readers (ShardInput). A "flat map" is
// TensorFlow's name for a stage that makes several elements of one: here a reader or an Interleave. For kData a Shard
// is added at the end; for kHint, ReplaceHints replaces the stages ShardHint.
#include "cohort/data/sharding/auto_shard.h"

#include <algorithm>
#include <array>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/readers/file_format.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

struct Worker {
  int64_t count, index;
};

// For these stages, kFile continues with the input. For Zip and Concatenate, it continues with all inputs.
constexpr std::array kPassThrough = {"Batch",       "Cache",    "Concatenate", "Filter", "Interleave", "Map",
                                     "PaddedBatch", "Prefetch", "Rebatch",     "Repeat", "Shard",      "Shuffle",
                                     "Skip",        "Take",     "Unbatch",     "Zip"};
constexpr std::array kShuffles = {"Shuffle"};
// To read the first element, these stages are left out, so that no buffer is filled, no thread is started and nothing
// is cached.
constexpr std::array kOrderOrKeep = {"Cache", "Prefetch", "Shuffle"};
constexpr std::array kOfTensors = {"FromTensors", "FromTensorSlices"};
// Stages that keep the rows of batches.
constexpr std::array kKeepRows = {"Cache", "Filter",    "Prefetch", "Repeat", "Shard",
                                  "Skip",  "ShardHint", "Shuffle",  "Take"};

template <typename Kinds>
bool IsOneOf(const DatasetNode& node, const Kinds& kinds) {
  return std::find(kinds.begin(), kinds.end(), node.kind()) != kinds.end();
}

// Returns `node` without its stages of `kinds`. Appends these to `removed`, the outermost first.
template <typename Kinds>
NodePtr Without(const Kinds& kinds, const NodePtr& node, std::vector<NodePtr>* removed) {
  if (node->inputs().empty()) return node;
  if (IsOneOf(*node, kinds)) {
    removed->push_back(node);
    return Without(kinds, node->input(), removed);
  }
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs()) inputs.push_back(Without(kinds, input, removed));
  return node->WithInputs(std::move(inputs));
}

bool MakesReaders(const DatasetNode& node);

bool HasReader(const DatasetNode& node) {
  if (IsReader(node) || node.kind() == "Idx") return true;
  const std::vector<NodePtr>& inputs = node.inputs();
  return std::any_of(inputs.begin(), inputs.end(), [](const NodePtr& input) { return HasReader(*input); }) ||
         MakesReaders(node);
}

// Returns true if `node` is an Interleave whose function makes datasets that read files. A function of the host is
// called with the first element, to see what it makes.
bool MakesReaders(const DatasetNode& node) {
  const DatasetFunction* function = InterleaveFunction(node);
  if (function == nullptr || !function->MayReadFiles()) return false;
  std::vector<NodePtr> passed;
  Element first;
  if (!Without(kOrderOrKeep, node.input(), &passed)->MakeIterator({})->Next(&first)) {
    throw FailedPreconditionError(StrCat("[data] expected an element, to see by it whether the function of ",
                                         StageLabel(node), " reads files; got none from ", node.input()->ToString()));
  }
  return HasReader(*node.Guard([&] { return function->Call(first); }));
}

// Returns `node` with a Shard on its input, which is file names or the elements of which a function makes readers.
NodePtr ShardInput(const NodePtr& node, const Worker& worker) {
  std::vector<NodePtr> shuffles;
  NodePtr input = Without(kShuffles, node->input(), &shuffles);
  input = MakeShard(std::move(input), worker.count, worker.index, /*require_non_empty=*/true);
  for (auto shuffle = shuffles.rbegin(); shuffle != shuffles.rend(); ++shuffle) input = (*shuffle)->WithInputs({input});
  return node->WithInputs({std::move(input)});
}

// TensorFlow also calls a reader a flat map: one over the file names.
bool IsFlatMap(const DatasetNode& node) { return IsReader(node) || InterleaveFunction(node) != nullptr; }

// Applies TensorFlow's rule for a flat map `node` that gets its elements from another flat map whose input is tensors:
// the elements of that other one are sharded, whether there are readers or not. Returns null if the rule does not
// apply.
NodePtr ShardBetweenFlatMaps(const NodePtr& node, const Worker& worker) {
  const NodePtr& input = node->input();
  if (IsFlatMap(*input)) return IsOneOf(*input->input(), kOfTensors) ? ShardInput(node, worker) : nullptr;
  if (!IsOneOf(*input, kPassThrough) || input->inputs().size() != 1) return nullptr;
  NodePtr sharded = ShardBetweenFlatMaps(input, worker);
  return sharded == nullptr ? nullptr : node->WithInputs({std::move(sharded)});
}

NodePtr ShardFiles(const NodePtr& node, const Worker& worker) {
  if (IsFlatMap(*node)) {
    NodePtr sharded = ShardBetweenFlatMaps(node, worker);
    if (sharded != nullptr) return sharded;
  }
  if (IsReader(*node) || MakesReaders(*node)) return ShardInput(node, worker);
  if (!IsOneOf(*node, kPassThrough)) {
    throw FailedPreconditionError(
        StrCat("[data] Found an unshardable source dataset: ", node->ToString(),
               "; expected a reader of files (TextLine, TFRecord, Csv), or an Interleave whose function makes one"));
  }
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs()) inputs.push_back(ShardFiles(input, worker));
  return node->WithInputs(std::move(inputs));
}

NodePtr ReplaceHints(const NodePtr& node, const Worker& worker) {
  if (node->inputs().empty()) return node;
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs()) inputs.push_back(ReplaceHints(input, worker));
  if (node->kind() == "ShardHint") {
    return MakeShard(inputs.front(), worker.count, worker.index, /*require_non_empty=*/worker.count > 1);
  }
  return inputs == node->inputs() ? node : node->WithInputs(std::move(inputs));
}

NodePtr ShardData(const NodePtr& node, const Worker& worker) {
  return MakeShard(node, worker.count, worker.index, /*require_non_empty=*/true);
}

}  // namespace

std::optional<Dataset> AutoShardFiles(const Dataset& dataset, int64_t num_workers, int64_t index) {
  try {
    return AutoShard(dataset, num_workers, index, AutoShardPolicy::kFile);
  } catch (const FailedPreconditionError& error) {
    LogWarning(
        "data",
        "AUTO sharding policy will apply DATA sharding policy as it failed to apply FILE sharding policy because "
        "of the following reason: ",
        error.what());
    return std::nullopt;
  }
}

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
    default: break;
  }
  const std::optional<Dataset> of_files = AutoShardFiles(dataset, num_workers, index);
  return of_files ? *of_files : Dataset(ShardData(dataset.node(), worker));
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
