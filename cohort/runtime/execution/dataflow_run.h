// DataflowRun: runs one step of a plan that has kernels that wait.
#pragma once

#include <optional>
#include <vector>

#include "cohort/runtime/execution/step_run.h"

namespace cohort {

// Runs nodes when their inputs are there, in the order in which they become ready. Only one thread at a time runs
// kernels that do not wait. A kernel that waits may end on any thread. If no thread runs the step at that time, that
// thread continues the step; in mode kDevice the compute thread does. An executor's RunPool owns it and lends it to one
// step at a time.
class DataflowRun final : public StepRun {
 public:
  DataflowRun(const Plan& plan, ArenaPlanner& planner, RunPool<DataflowRun>& pool);

  // Starts a step on the calling thread, whose kind is `thread`. At the end gives the run back to the pool, and then
  // calls `done`. The rest is as in Executor::RunAsync.
  void Start(const StepInfo& step, StepMode mode, Done done, StepThread thread);
  // Does the same on the compute thread, and returns at once.
  void StartOnComputeThread(const StepInfo& step, StepMode mode, Done done);

 private:
  // The next action of the thread that runs the step.
  enum class Turn { kNode, kIdle, kEnd };

  void Begin(const StepInfo& step, StepMode mode, Done done);
  // Runs nodes until no node is ready. Ends the step if no node is left.
  void Drain(StepThread thread);
  void DrainOnComputeThread();
  // Takes the next node that is ready. Returns kIdle if there is none and kernels are waiting: nodes may become ready
  // later, and the step has not ended.
  Turn NextTurn(int32_t* index);
  // Returns true if the thread has left the step, because no node is ready. It must not touch the step any more: a
  // kernel that ends continues the step on its own thread, and may end it. If the step has failed, the last kernel that
  // waits does so.
  bool LeaveIfIdle();
  // Runs the node, or starts it if its kernel waits. Returns false if the calling thread has passed the step to the
  // compute thread.
  bool Visit(int32_t index, StepThread thread);
  void StartAsync(int32_t index, StepThread thread);
  void AsyncDone(int32_t index, const Status& status);
  void PushSuccessors(const PlanNode& node) COHORT_REQUIRES(mu_);
  // After a failure no new node runs. One exception: an update set that has begun is applied as a whole.
  void SkipAfterFailure() COHORT_REQUIRES(mu_);
  // Returns false if node `index` must wait for the update gate. Other nodes may run in the meantime.
  bool PassGate(int32_t index);
  void OpenedGate(int32_t index);
  // Called when all nodes have run. On a device with streams: when all have enqueued their work; then it ends the step
  // after that work.
  void EndStep();
  void Finish();

  RunPool<DataflowRun>& pool_;
  Done done_;
  std::vector<std::optional<KernelContext>> contexts_;   // of the kernels that wait
  std::vector<int32_t> pending_ COHORT_GUARDED_BY(mu_);  // for each node: its predecessors that have not ended
  std::vector<int32_t> ready_ COHORT_GUARDED_BY(mu_);    // a queue: [ready_head_, size)
  size_t ready_head_ COHORT_GUARDED_BY(mu_) = 0;
  int32_t waiting_ COHORT_GUARDED_BY(mu_) = 0;           // kernels that have not called `done`; +1 for the gate
  std::vector<int32_t> at_gate_ COHORT_GUARDED_BY(mu_);  // updates that wait for the gate
  bool running_ COHORT_GUARDED_BY(mu_) = false;          // a thread is in Drain, or will be
};

}  // namespace cohort
