// JoinReplicas. First it checks that all replicas describe the same losses and updates. Then it sums gradients and
// scalars over replicas in one bucketed reduction (ScalarsOf), adds the updates of the moving statistics (AddUpdates),
// and applies the optimizers. JoinMetrics does the same for metrics.
#include "cohort/keras/training/replicated_step.h"

#include <algorithm>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

using distribute::PerReplica;
using distribute::Strategy;

// Nodes for one of this process's replicas.
class ReplicaScope {
 public:
  ReplicaScope(const Strategy& strategy, Graph& graph, size_t local) {
    if (!strategy.devices()[local].empty()) device_.emplace(graph, strategy.devices()[local]);
  }

 private:
  std::optional<DeviceScope> device_;
};

Output AsFloat(Output value) { return value.dtype() == DType::kFloat32 ? value : ops::Cast(value, DType::kFloat32); }

// Examples of a replica's share, float32 scalar.
Output ExamplesOf(const StepParts& parts) {
  return ops::Cast(ops::Squeeze(ops::Slice(ops::ShapeOf(parts.inputs.x.at(0), DType::kInt64), {0}, {1}), {0}),
                   DType::kFloat32);
}

// Throws if replicas differ. Steps of the program's own may describe different losses or updates.
void ExpectSameLossesAndUpdates(const std::vector<StepParts*>& replicas) {
  for (size_t r = 1; r < replicas.size(); ++r) {
    const size_t losses = replicas[r]->output_losses.size();
    const size_t updates = replicas[r]->updates.all().size();
    if (losses == replicas[0]->output_losses.size() && updates == replicas[0]->updates.all().size()) continue;
    throw FailedPreconditionError(
        StrCat("[keras/train_step] expected the same losses and updates of every replica; replica ", r, " has ", losses,
               " losses of outputs and ", updates, " updates, replica 0 has ", replicas[0]->output_losses.size(),
               " and ", replicas[0]->updates.all().size()));
  }
}

// Returns, for each replica, the values that are summed together with the gradients.
PerReplica<std::vector<Output>> ScalarsOf(const Strategy& strategy, const std::vector<StepParts*>& replicas,
                                          const Output& stop_vote) {
  PerReplica<std::vector<Output>> values;
  for (size_t r = 0; r < replicas.size(); ++r) {
    const StepParts& parts = *replicas[r];
    const ReplicaScope device(strategy, parts.weights.graph(), r);
    std::vector<Output> own = {AsFloat(parts.reported_loss)};
    for (const auto& [name, loss] : parts.output_losses) own.push_back(loss);
    if (CountsExamples(strategy)) own.push_back(ExamplesOf(parts));
    if (stop_vote.valid()) own.push_back(stop_vote);
    values.push_back(std::move(own));
  }
  return values;
}

// Adds the updates of moving statistics. They become the mean over all replicas that had examples.
void AddUpdates(const Strategy& strategy, const std::vector<StepParts*>& replicas, std::vector<Node*>* targets) {
  const size_t count = replicas[0]->updates.all().size();
  if (count == 0) return;
  PerReplica<std::vector<Output>> values;
  if (strategy.num_replicas_in_sync() > 1) {
    for (size_t r = 0; r < replicas.size(); ++r) {
      const StepParts& parts = *replicas[r];
      Graph& graph = parts.weights.graph();
      const ReplicaScope device(strategy, graph, r);
      const Output counts = ops::Greater(ExamplesOf(parts), ops::Const(graph, 0.0f));
      std::vector<Output> own = {ops::Cast(counts, DType::kFloat32)};
      for (const WeightUpdates::Update& update : parts.updates.all()) {
        const Output value = AsFloat(update.value);
        own.push_back(ops::SelectV2(counts, value, ops::ZerosLike(value)));
      }
      values.push_back(std::move(own));
    }
    values = strategy.SumOverReplicas(values);
  }
  const auto holders = static_cast<size_t>(strategy.num_copies());
  for (size_t r = 0; r < holders; ++r) {
    for (size_t i = 0; i < count; ++i) {
      const WeightUpdates::Update& update = replicas[r]->updates.all()[i];
      Output value = update.value;
      if (!values.empty()) {
        const ColocateWith beside(value.graph(), *update.variable.handle().node);
        value = ops::Div(values[r][1 + i], values[r][0]);
        if (value.dtype() != update.variable.dtype()) value = ops::Cast(value, update.variable.dtype());
      }
      targets->push_back(update.variable.Assign(value));
    }
  }
  for (const std::vector<Output>& own : values) {
    for (const Output& value : own) targets->push_back(value.node);
  }
}

}  // namespace

bool CountsExamples(const Strategy& strategy) {
  return strategy.num_workers() > 1 || !strategy.closure_workers().empty();
}

ReplicatedStep JoinReplicas(const Strategy& strategy, const std::vector<StepParts*>& replicas,
                            const std::vector<GraphOptimizer*>& optimizers, const Output& stop_vote) {
  ReplicatedStep joined;
  const bool alone = strategy.num_replicas_in_sync() == 1;
  ExpectSameLossesAndUpdates(replicas);
  PerReplica<std::vector<train::GradientAndVariable>> own;
  for (const StepParts* replica : replicas) own.push_back(replica->gradients);
  const Strategy::ReplicaSums sums = strategy.SumGradients(own, ScalarsOf(strategy, replicas, stop_vote));
  joined.fetches = sums.values[0];
  AddUpdates(strategy, replicas, &joined.targets);
  for (size_t r = 0; r < replicas.size(); ++r) {
    const StepParts& parts = *replicas[r];
    joined.targets.insert(joined.targets.end(), parts.targets.begin(), parts.targets.end());
    // All members of a collective have to run.
    if (!alone) {
      for (const Output& sum : sums.values[r]) joined.targets.push_back(sum.node);
    }
    if (r >= optimizers.size() || parts.gradients.empty()) continue;
    const ReplicaScope device(strategy, parts.weights.graph(), r);
    joined.targets.push_back(optimizers[r]->Apply(sums.gradients[r]));
  }
  std::sort(joined.targets.begin(), joined.targets.end(), [](Node* a, Node* b) { return a->id() < b->id(); });
  joined.targets.erase(std::unique(joined.targets.begin(), joined.targets.end()), joined.targets.end());
  return joined;
}

std::vector<ReplicatedMetric> JoinMetrics(const Strategy& strategy, const std::vector<StepParts*>& replicas) {
  std::vector<ReplicatedMetric> joined;
  for (size_t m = 0; m < replicas[0]->metrics.size(); ++m) {
    const MetricInStep& first = replicas[0]->metrics[m];
    ReplicatedMetric metric;
    metric.name = first.name;
    metric.metric = first.metric;
    std::vector<Output> local, all;
    for (size_t s = 0; s < first.states.size(); ++s) {
      PerReplica<Output> values;
      for (const StepParts* replica : replicas) {
        const ops::Variable& state = replica->metrics.at(m).states[s];
        metric.resets.push_back(state.initializer());
        values.push_back(state.value());
      }
      local.push_back(strategy.SumHere(values));
      if (strategy.num_workers() > 1) all.push_back(strategy.Reduce(distribute::Reduction::kSum, values));
    }
    metric.local_result = ops::Cast(first.metric->Result(local), DType::kFloat32);
    metric.result = all.empty() ? metric.local_result : ops::Cast(first.metric->Result(all), DType::kFloat32);
    joined.push_back(std::move(metric));
  }
  return joined;
}

}  // namespace cohort::keras
