// ApplyGradients adds three groups of nodes: the accumulators with the worker's train op, the chief's op (take the
// means, apply them, put tokens into the queue), and in Begin of the hook the ops that prepare a session. The hook runs
// the latter, and the chief's hook then repeats the chief's op until the session closes.
#include "cohort/train/sync_replicas_optimizer.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/step_clock.h"
#include "cohort/train/session/training_record.h"
#include "cohort/train/sync_replicas_hook.h"

namespace cohort::train {
SyncReplicasOptimizer::SyncReplicasOptimizer(Optimizer& optimizer, const SyncReplicasOptions& options)
    : optimizer_(optimizer),
      options_(options),
      total_num_replicas_(options.total_num_replicas.value_or(options.replicas_to_aggregate)) {
  if (options_.variable_averages == nullptr && !options_.variables_to_average.empty()) {
    throw InvalidArgumentError(
        "[train/sync replicas] expected variables_to_average only together with variable_averages; got no averages");
  }
  if (options_.staleness != 0) {
    if (options_.staleness < kUnlimitedStaleness || options_.replicas_to_aggregate != 1 ||
        options_.total_num_replicas) {
      throw InvalidArgumentError(StrCat(
          "[train/sync replicas] expected a staleness of 0, of at least 1, or kUnlimitedStaleness (-1), and numbers "
          "of ",
          "replicas only with staleness 0; got staleness ", options_.staleness, ", replicas_to_aggregate ",
          options_.replicas_to_aggregate, " and ", options_.total_num_replicas ? "a" : "no", " total_num_replicas"));
    }
    LogInfo("train", "each gradient is applied when it comes; staleness=", options_.staleness);
    return;
  }
  if (options_.replicas_to_aggregate < 1 || total_num_replicas_ < 1) {
    throw InvalidArgumentError(StrCat("[train/sync replicas] expected replicas_to_aggregate and total_num_replicas of ",
                                      "at least 1; got ", options_.replicas_to_aggregate, " and ",
                                      total_num_replicas_));
  }
  LogInfo("train", "SyncReplicasV2: replicas_to_aggregate=", options_.replicas_to_aggregate,
          "; total_num_replicas=", total_num_replicas_);
}

std::vector<GradientAndVariable> SyncReplicasOptimizer::ComputeGradients(
    Output loss, const std::vector<ops::Variable>& variables) const {
  return optimizer_.ComputeGradients(loss, variables);
}

Node* SyncReplicasOptimizer::Minimize(Output loss, const ops::Variable& global_step,
                                      const std::vector<ops::Variable>& variables) {
  return ApplyGradients(ComputeGradients(loss, variables), global_step);
}

// If one parameter server has all accumulators and the queue of tokens, it keeps the local step of each worker, too.
// Then neither the step nor the token travels. Otherwise the worker keeps it, so that it travels with the gradients.
void SyncReplicasOptimizer::MakeLocalStep(const std::vector<GradientAndVariable>& gradients) {
  const Node& server = *parts_->global_step.handle().node;
  Graph& graph = server.graph();
  const Node* anchor = ops::NoOp(graph, options_.name + "/local_anchor");
  const DeviceName worker = DeviceName::Parse(anchor->device());
  const bool one_server = std::all_of(gradients.begin(), gradients.end(), [&server](const GradientAndVariable& pair) {
    return !pair.gradient.exists() || pair.variable.handle().node->device() == server.device();
  });
  const bool on_server = one_server && worker.job && worker.task;
  const ColocateWith beside(graph, on_server ? server : *anchor);
  const NameScope root(graph, "");
  VariableRequest request;
  // Variables of different workers on one server need different names.
  request.name = graph.UniqueName(on_server ? StrCat("sync_rep_local_step/", *worker.job, "_", *worker.task)
                                            : "sync_rep_local_step");
  request.dtype = DType::kInt64;
  request.trainable = false;
  request.local = true;
  request.initial_value = [&graph] {
    return ops::Const(graph, Tensor::Scalar(int64_t{0}), "sync_rep_local_step/zero");
  };
  parts_->local_step = ops::Variable(ops::MakeVariable(graph, request));
}

// A local step of the worker is read after its gradients, so that all of them travel in one message.
Output SyncReplicasOptimizer::ReadLocalStep(const std::vector<GradientAndVariable>& gradients) const {
  const Node& handle = *parts_->local_step.handle().node;
  std::vector<Node*> beside;
  for (const GradientAndVariable& pair : gradients) {
    Node* node = pair.gradient.exists() ? pair.gradient.values.node : nullptr;
    if (node != nullptr && node->device() == handle.device()) beside.push_back(node);
  }
  const ControlDependencies after(handle.graph(), beside);
  return parts_->local_step.Read();
}

Gradient SyncReplicasOptimizer::Accumulate(const GradientAndVariable& pair, Output local_step,
                                           std::vector<Node*>* applied) {
  const ops::Variable& variable = pair.variable;
  Graph& graph = variable.graph();
  const ColocateWith beside(graph, *variable.handle().node);
  const ops::AccumulatorOptions options{.shared_name = variable.name() + "/grad_accum",
                                        .name = NodeName(variable.name() + "/grad_accum")};
  const DType dtype = pair.gradient.values.dtype();
  if (pair.gradient.is_sparse()) {
    auto made = std::make_unique<ops::SparseConditionalAccumulator>(graph, dtype, variable.shape(), options);
    applied->push_back(made->ApplyIndexedSlicesGrad(pair.gradient, local_step));
    const Gradient mean = made->TakeIndexedSlicesGrad(options_.replicas_to_aggregate);
    parts_->accumulators.push_back(std::move(made));
    return mean;
  }
  auto made = std::make_unique<ops::ConditionalAccumulator>(graph, dtype, variable.shape(), options);
  applied->push_back(made->ApplyGrad(pair.gradient.values, local_step));
  const Gradient mean = made->TakeGrad(options_.replicas_to_aggregate);
  parts_->accumulators.push_back(std::move(made));
  return mean;
}

Node* SyncReplicasOptimizer::ApplyGradients(const std::vector<GradientAndVariable>& gradients,
                                            const ops::Variable& global_step) {
  if (parts_ != nullptr) throw FailedPreconditionError("[train/sync replicas] ApplyGradients was called before");
  if (!global_step.valid()) {
    throw InvalidArgumentError("[train/sync replicas] Global step is required to check staleness");
  }
  if (gradients.empty()) throw InvalidArgumentError("[train/sync replicas] Must supply at least one variable");
  parts_ = std::make_shared<SyncReplicasParts>();
  parts_->global_step = global_step;
  Graph& graph = global_step.graph();
  AddTrainingSetting(graph, "SyncReplicasOptimizer's staleness", options_.staleness);
  AddTrainingSetting(graph, "SyncReplicasOptimizer's replicas_to_aggregate", options_.replicas_to_aggregate);
  AddTrainingSetting(graph, "SyncReplicasOptimizer's total_num_replicas", total_num_replicas_);
  MakeLocalStep(gradients);
  return options_.staleness == 0 ? ApplyMeans(gradients) : ApplyOnArrival(gradients);
}

Node* SyncReplicasOptimizer::ApplyMeans(const std::vector<GradientAndVariable>& gradients) {
  const ops::Variable& global_step = parts_->global_step;
  Graph& graph = global_step.graph();
  std::vector<Node*> applied;
  std::vector<GradientAndVariable> means;
  {
    const NameScope scope(graph, options_.name);
    const Output local_step = ReadLocalStep(gradients);
    for (const GradientAndVariable& pair : gradients) {
      means.push_back({pair.gradient.exists() ? Accumulate(pair, local_step, &applied) : pair.gradient, pair.variable});
    }
  }
  Node* update = UpdateAverages(optimizer_.ApplyGradients(means, global_step));
  parts_->num_stale = parts_->accumulators.front()->NumStale();
  {
    const ColocateWith beside(graph, *global_step.handle().node);
    parts_->tokens.emplace(
        graph, std::vector<DType>{DType::kInt64},
        ops::QueueOptions{.shapes = {Shape()}, .shared_name = "sync_token_q", .name = NodeName("sync_token_q")});
  }
  {
    const ControlDependencies after(graph, {update});
    parts_->chief_op =
        PutTokens(*parts_->tokens, global_step, std::max(total_num_replicas_, options_.replicas_to_aggregate));
  }
  Output token;
  {
    const ControlDependencies after(graph, applied);
    token = parts_->tokens->Dequeue({.held_by_session = true})[0];
  }
  // The token comes after the gradients, so the worker needs no message of its own about them.
  return parts_->local_step.Assign(token, options_.name);
}

Node* SyncReplicasOptimizer::UpdateAverages(Node* update) const {
  if (options_.variable_averages == nullptr) return update;
  Graph& graph = update->graph();
  const ControlDependencies after(graph, {update});
  const std::vector<ops::Variable>& variables = options_.variables_to_average;
  return variables.empty() ? options_.variable_averages->Apply(graph) : options_.variable_averages->Apply(variables);
}

// The local step is the global step of the variables with which the next gradient will be computed, or an earlier one.
Node* SyncReplicasOptimizer::ApplyOnArrival(const std::vector<GradientAndVariable>& gradients) {
  const ops::Variable& global_step = parts_->global_step;
  Graph& graph = global_step.graph();
  Node* update = UpdateAverages(optimizer_.ApplyGradients(gradients, global_step));
  Node* tick = nullptr;
  {
    const ColocateWith beside(graph, *global_step.handle().node);
    parts_->clock = ops::StepClock(graph, "sync_step_clock", "sync_step_clock");
    const ControlDependencies after(graph, {update});
    const Output updates = AsInt64(global_step.Read()) - parts_->local_step.value();
    tick = ops::StepClockTick(parts_->clock, updates - int64_t{1}, options_.staleness);
  }
  const ControlDependencies after(graph, {tick});
  return parts_->local_step.Assign(AsInt64(global_step.Read()), options_.name);
}

std::shared_ptr<SessionRunHook> SyncReplicasOptimizer::MakeSessionRunHook(bool is_chief, int num_tokens) const {
  parts();
  if (options_.staleness != 0) {
    if (num_tokens != -1) {
      throw InvalidArgumentError(StrCat("[train/sync replicas] expected num_tokens -1 with staleness ",
                                        options_.staleness, ", because there are no tokens; got ", num_tokens));
    }
    return std::make_shared<SyncReplicasHook>(parts_, is_chief, 0);
  }
  const int needed = options_.replicas_to_aggregate - total_num_replicas_;
  if (num_tokens == -1) {
    num_tokens = options_.replicas_to_aggregate;
  } else if (num_tokens < std::max(needed, 0)) {
    throw InvalidArgumentError(StrCat("[train/sync replicas] Too few tokens to finish the first step: ", num_tokens,
                                      " (given) vs ", std::max(needed, 0), " (needed)"));
  }
  return std::make_shared<SyncReplicasHook>(parts_, is_chief, num_tokens);
}

const SyncReplicasParts& SyncReplicasOptimizer::parts() const {
  if (parts_ != nullptr) return *parts_;
  throw FailedPreconditionError("[train/sync replicas] expected a call of ApplyGradients or Minimize before");
}

const SyncReplicasParts& SyncReplicasOptimizer::synchronous_parts() const {
  if (options_.staleness == 0) return parts();
  throw FailedPreconditionError(StrCat("[train/sync replicas] expected staleness 0; with staleness ",
                                       options_.staleness,
                                       " there are no accumulators, no tokens and no op of the chief"));
}

Output SyncReplicasOptimizer::num_stale_gradients() const { return synchronous_parts().num_stale; }
const ops::Queue& SyncReplicasOptimizer::token_queue() const { return *synchronous_parts().tokens; }
Node* SyncReplicasOptimizer::chief_op() const { return synchronous_parts().chief_op; }
const ops::Variable& SyncReplicasOptimizer::local_step() const { return parts().local_step; }

}  // namespace cohort::train
