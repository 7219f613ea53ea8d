// SyncReplicasOptimizer: synchronous training with parameter servers. It follows TensorFlow's
// tf.compat.v1.train.SyncReplicasOptimizer.
//
//   train::GradientDescentOptimizer sgd(0.1f);
//   train::SyncReplicasOptimizer optimizer(sgd, {.replicas_to_aggregate = 2});
//   Node* train_op = optimizer.Minimize(loss, global_step);
//   train::MonitoredSession session = train::MonitoredTrainingSession(
//       graph, {.master = server.Target(), .is_chief = is_chief, .hooks = {optimizer.MakeSessionRunHook(is_chief)}});
//   while (!session.should_stop()) session.Run({}, {}, {train_op});
//
// A worker's step adds its gradients to accumulators on the parameter servers, and then waits for a token. When
// replicas_to_aggregate gradients of each variable have come, the chief applies their mean, adds 1 to the global step,
// and puts new tokens into the queue, which let the workers go on. So the global step counts updates, not the steps of
// workers. A gradient that was computed with variables of an earlier global step is stale: it is dropped and counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/ops/accumulators.h"
#include "cohort/ops/queues.h"
#include "cohort/train/moving_averages.h"
#include "cohort/train/optimizer.h"
#include "cohort/train/session_run_hook.h"

namespace cohort::train {

struct SyncReplicasParts;

constexpr int kUnlimitedStaleness = -1;

struct COHORT_EXPORT SyncReplicasOptions {
  int replicas_to_aggregate = 1;  // the gradients of each variable that make an update
  // The number of workers; default: replicas_to_aggregate. If there are more, the others are backup workers: the update
  // does not wait for the slowest ones, whose gradients are stale. If there are fewer, a worker makes several gradients
  // for an update.
  std::optional<int> total_num_replicas;
  // 0: synchronous training, as above. k, at least 1: each gradient is applied when it comes, and a worker waits before
  // a step that would bring it more than k steps ahead of the slowest worker whose session is open.
  // kUnlimitedStaleness: no worker waits (asynchronous training). Then the numbers of replicas must have their
  // defaults, and the global step counts the steps of all workers.
  int staleness = 0;
  // If not null, each update of the variables is followed by one of these averages, on the parameter servers. The token
  // of a worker comes after both. Not owned; it must outlive ApplyGradients. `variables_to_average` are the averaged
  // variables; empty: all trainable ones of the graph.
  ExponentialMovingAverage* variable_averages = nullptr;
  std::vector<ops::Variable> variables_to_average = {};
  std::string name = "sync_replicas";
};

// Makes another optimizer synchronous. All workers of a job make it with the same options and the same model. The
// program owns it, and the optimizer that it contains must outlive it. Only one thread at a time may use it.
class COHORT_EXPORT SyncReplicasOptimizer {
 public:
  // Throws InvalidArgumentError for numbers of replicas less than 1, and for variables_to_average without
  // variable_averages.
  SyncReplicasOptimizer(Optimizer& optimizer, const SyncReplicasOptions& options);

  // Returns what Optimizer::ComputeGradients returns.
  std::vector<GradientAndVariable> ComputeGradients(Output loss,
                                                    const std::vector<ops::Variable>& variables = {}) const;
  // Adds the nodes of a worker's step, and those of the chief. Returns the last node of a worker's step. The
  // accumulator of each variable is on the variable's device, and the queue of tokens is beside the global step. The
  // worker is the device that the scopes give to a NoOp. If the global step and all variables are on one device, and
  // the worker's device names its task, the local step is beside the global step, as the local variable
  // "sync_rep_local_step/worker_1". Otherwise it is on the worker, as "sync_rep_local_step". Throws
  // FailedPreconditionError if it was called before, and InvalidArgumentError if `global_step` is not valid ("Global
  // step is required to check staleness"). Throws what Optimizer::ApplyGradients throws.
  Node* ApplyGradients(const std::vector<GradientAndVariable>& gradients, const ops::Variable& global_step);
  // Calls ComputeGradients, then ApplyGradients.
  Node* Minimize(Output loss, const ops::Variable& global_step, const std::vector<ops::Variable>& variables = {});

  // Returns the hook that each worker's session needs. When a session was made, the hook sets the worker's local step
  // to the global step. The chief's hook then sets the global step of the accumulators, empties the queue of tokens,
  // puts `num_tokens` tokens into it (-1: replicas_to_aggregate), and starts the loop that applies gradients. If the
  // loop fails, the chief's own step fails with that error, also if it waits for a token. If the chief's session ends
  // without an error, the hook closes the queue, and the steps of workers that wait for a token fail with
  // OutOfRangeError, the clean end of a loop. After SIGTERM (see StopSignal) it does not close the queue, because the
  // workers wait for a chief that comes back. If a worker itself has got SIGTERM, its step waits for a token until 2 s
  // after the signal (the chief: 5 s), and then fails with OutOfRangeError, too; its gradient counts nevertheless. A
  // token that a worker holds returns to the queue if the worker's session ends: when it is closed, or when its
  // connection is lost for longer than ServerOptions::reconnect_limit. The nodes of the hook are added in its Begin. A
  // program that calls the hook itself stops and joins the coordinator before it closes the session. Throws
  // FailedPreconditionError if ApplyGradients was not called, and InvalidArgumentError "Too few tokens to finish the
  // first step..." if `num_tokens` is not enough.
  std::shared_ptr<SessionRunHook> MakeSessionRunHook(bool is_chief, int num_tokens = -1) const;

  // Returns how many gradients of the first variable were stale since its parameter server was started: int64 scalar.
  // Throws FailedPreconditionError if ApplyGradients was not called; so do the following functions.
  Output num_stale_gradients() const;
  const ops::Queue& token_queue() const;
  const ops::Variable& local_step() const;
  // Returns the op that the chief runs in a loop: it waits for gradients, applies their mean, and puts tokens into the
  // queue.
  Node* chief_op() const;

 private:
  Node* ApplyMeans(const std::vector<GradientAndVariable>& gradients);
  Node* ApplyOnArrival(const std::vector<GradientAndVariable>& gradients);
  // Adds the update of the averages after `update`. Returns the last node, which is `update` if there are none.
  Node* UpdateAverages(Node* update) const;
  Output ReadLocalStep(const std::vector<GradientAndVariable>& gradients) const;
  // Returns the accumulated mean of a gradient, and adds the node that accumulates it to `applied`.
  Gradient Accumulate(const GradientAndVariable& pair, Output local_step, std::vector<Node*>* applied);
  void MakeLocalStep(const std::vector<GradientAndVariable>& gradients);
  const SyncReplicasParts& parts() const;
  // Throws FailedPreconditionError with a staleness other than 0.
  const SyncReplicasParts& synchronous_parts() const;

  Optimizer& optimizer_;
  const SyncReplicasOptions options_;
  const int total_num_replicas_;
  std::shared_ptr<SyncReplicasParts> parts_;  // null until ApplyGradients
};

}  // namespace cohort::train
