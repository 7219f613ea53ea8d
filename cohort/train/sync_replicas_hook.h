// SyncReplicasHook: prepares the sessions of a SyncReplicasOptimizer, and runs the chief's loop. Internal.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/ops/accumulators.h"
#include "cohort/ops/queues.h"
#include "cohort/ops/variables.h"
#include "cohort/train/session_run_hook.h"

namespace cohort::train {

// The nodes of a SyncReplicasOptimizer. The optimizer and its hooks share it. It does not change after ApplyGradients.
struct SyncReplicasParts {
  ops::Variable global_step;
  ops::Variable local_step;
  // Set with staleness 0:
  std::optional<ops::FIFOQueue> tokens;
  std::vector<std::unique_ptr<ops::Accumulator>> accumulators;
  Node* chief_op = nullptr;
  Output num_stale;
  // Set with another staleness:
  Output clock;
};

// Returns the step as int64.
Output AsInt64(Output step);
// Adds a node that puts `count` tokens into the queue, each with the value that the global step has then.
Node* PutTokens(const ops::Queue& queue, const ops::Variable& global_step, int count);

// See SyncReplicasOptimizer::MakeSessionRunHook. What the chief's loop uses belongs to the runs of the session, which
// end before the session does, so the loop does not need the hook.
class SyncReplicasHook final : public SessionRunHook {
 public:
  SyncReplicasHook(std::shared_ptr<const SyncReplicasParts> parts, bool is_chief, int num_tokens)
      : parts_(std::move(parts)), is_chief_(is_chief), num_tokens_(num_tokens) {}

  std::string name() const override { return "SyncReplicasOptimizerHook"; }
  void Begin(Graph& graph) override;
  void AfterCreateSession(Session& session, Coordinator& coordinator) override;
  void End(Session& session) override;

 private:
  // The nodes that end the waits of the own steps of the hook's session for a token.
  struct Failure {
    Output code;
    Output message;
    Node* fail_own_step = nullptr;  // null if there are no tokens
    // Returns the request of the run that ends them with `error`.
    RunRequest Request(const Status& error) const;
  };

  void AddChiefOps(Graph& graph);
  void AddSummaries();
  // Prepares the variables and the queue, and starts the chief's loop.
  void StartLoop(Session& session, Coordinator& coordinator);
  // Adds a loop to the coordinator that ends the wait for a token, if this process has got SIGTERM and no token comes.
  void LeaveAfterSigterm(Session& session, Coordinator& coordinator) const;
  // Tells the chief's step, and the coordinator, why the loop has ended.
  static void OnLoopEnd(const Status& status, const Failure& failure, Session& session, Coordinator& coordinator);

  const std::shared_ptr<const SyncReplicasParts> parts_;
  const bool is_chief_;
  const int num_tokens_;
  Node* worker_init_ = nullptr;  // null until Begin
  Node* chief_init_ = nullptr;
  Node* init_tokens_ = nullptr;
  Node* close_tokens_ = nullptr;
  Failure failure_;
  // Set when the chief has closed the queue, so that the loop's error is no failure.
  std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace cohort::train
