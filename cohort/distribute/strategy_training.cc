// Strategy: gradients of all replicas and the updates that follow from them.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/strategy.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"

namespace cohort::distribute {
namespace {

using train::GradientAndVariable;
using Pairs = std::vector<GradientAndVariable>;

// All replicas must have gradients of the same kind, because each gradient is summed with those of the others.
void ExpectSameGradients(const PerReplica<Pairs>& gradients, const std::vector<bool>& by_rows) {
  for (size_t r = 1; r < gradients.size(); ++r) {
    bool same = gradients[r].size() == by_rows.size();
    size_t g = 0;
    for (; same && g < by_rows.size(); ++g) {
      const Gradient& gradient = gradients[r][g].gradient;
      same = gradient.exists() == gradients[0][g].gradient.exists() && (!by_rows[g] || gradient.is_sparse());
    }
    if (same) continue;
    throw FailedPreconditionError(
        StrCat("[distribute] expected the same gradients of every replica; replica ", r, " has others than replica 0",
               g > 0 && g <= by_rows.size() ? StrCat(", first for variable '", gradients[0][g - 1].variable.name(), "'")
                                            : std::string(),
               "; let all replicas compute the same loss"));
  }
}

}  // namespace

Strategy::ReplicaSums Strategy::SumGradients(const PerReplica<Pairs>& gradients,
                                             const PerReplica<std::vector<Output>>& values) const {
  std::vector<bool> by_rows;
  for (const GradientAndVariable& pair : gradients.at(0)) by_rows.push_back(GathersRows(pair.gradient, pair.variable));
  ExpectSameGradients(gradients, by_rows);
  if (num_replicas_in_sync() == 1) return {values, gradients};
  PerReplica<std::vector<Output>> dense = values;
  dense.resize(gradients.size());
  const size_t first = dense[0].size();
  for (size_t r = 0; r < gradients.size(); ++r) {
    for (size_t g = 0; g < by_rows.size(); ++g) {
      const Gradient& gradient = gradients[r][g].gradient;
      if (!gradient.exists() || by_rows[g]) continue;
      const ColocateWith beside(gradient.values.graph(), *gradient.values.node);
      dense[r].push_back(ToDense(gradient));
    }
  }
  const PerReplica<std::vector<Output>> sums = SumOverReplicas(dense);
  ReplicaSums result = {{}, gradients};
  for (const std::vector<Output>& own : sums) {
    result.values.emplace_back(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(first));
  }
  for (size_t g = 0, next = first; g < by_rows.size(); ++g) {
    if (!gradients[0][g].gradient.exists()) continue;
    PerReplica<Gradient> all;
    for (size_t r = 0; r < gradients.size(); ++r) {
      all.push_back(by_rows[g] ? gradients[r][g].gradient : Gradient(sums[r].at(next)));
    }
    if (by_rows[g]) {
      all = GatherRows(all);
    } else {
      ++next;
    }
    for (size_t r = 0; r < gradients.size(); ++r) result.gradients[r][g].gradient = all[r];
  }
  return result;
}

PerCopy<Pairs> Strategy::ComputeGradients(const PerReplica<Output>& losses,
                                          const std::vector<ops::Variable>& given) const {
  if (losses.size() != layout_.devices.size()) {
    throw InvalidArgumentError(StrCat("[distribute] expected a loss of each of the ", layout_.devices.size(),
                                      " replicas of this process; got ", losses.size()));
  }
  const std::vector<ops::Variable> variables = VariablesOf(losses[0].graph(), given);
  if (variables.empty()) {
    throw InvalidArgumentError(
        StrCat("[distribute] expected variables to train; got none, and none was made in a scope ", "of ", name(),
               ": make them while Strategy::Scope(graph) lives"));
  }
  PerReplica<Pairs> gradients;
  for (size_t r = 0; r < losses.size(); ++r) {
    Pairs own;
    std::vector<Output> handles;
    for (const ops::Variable& variable : variables) {
      own.push_back({Gradient(), Local(variable, static_cast<int>(r))});
      handles.push_back(own.back().variable.handle());
    }
    const std::vector<Gradient> found = Gradients({losses[r]}, handles);
    for (size_t g = 0; g < own.size(); ++g) own[g].gradient = found[g];
    gradients.push_back(std::move(own));
  }
  PerCopy<Pairs> summed = SumGradients(gradients, {}).gradients;
  summed.resize(static_cast<size_t>(num_copies()));
  return summed;
}

Node* Strategy::ApplyGradients(train::Optimizer& optimizer, const PerCopy<Pairs>& gradients,
                               const ops::Variable& global_step) const {
  if (gradients.size() != static_cast<size_t>(num_copies())) {
    throw InvalidArgumentError(StrCat("[distribute] expected gradients for each of the ", num_copies(),
                                      " copies of the variables; got ", gradients.size()));
  }
  Pairs all;
  for (const Pairs& of_copy : gradients) all.insert(all.end(), of_copy.begin(), of_copy.end());
  Node* update = optimizer.ApplyGradients(all);
  if (!global_step.valid()) return update;
  Graph& graph = global_step.graph();
  const ControlDependencies after(graph, {update});
  std::vector<Node*> steps;
  for (int copy = 0; copy < num_copies(); ++copy) {
    const ops::Variable own = Local(global_step, copy);
    const ColocateWith beside(graph, *own.handle().node);
    steps.push_back(own.AssignAdd(ops::Const(graph, ops::NumberTensor(own.dtype(), 1))));
  }
  return ops::Group(graph, steps, "update");
}

Node* Strategy::Minimize(train::Optimizer& optimizer, const PerReplica<Output>& losses,
                         const MinimizeOptions& options) const {
  return ApplyGradients(optimizer, ComputeGradients(losses, options.variables), options.global_step);
}

Node* Strategy::Minimize(train::Optimizer& optimizer, const PerReplica<Output>& losses) const {
  return Minimize(optimizer, losses, {});
}

}  // namespace cohort::distribute
