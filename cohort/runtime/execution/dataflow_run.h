// DataflowRun: runs one step of a plan that has kernels that wait.
#pragma once

#include <optional>
#include <vector>

#include "cohort/runtime/execution/step_run.h"

namespace cohort {

// Runs nodes when their inputs are there, in the order in which they become ready. Only one thread at a time runs
// kernels that do not wait. A kernel that waits may end on any thread. If no thread runs the step when the kernel ends,
// the thread on which it ends continues the step; but in mode kDevice the compute thread continues it. An executor's
// RunPool owns each DataflowRun and lends it to one step at a time.
class DataflowRun final : public StepRun {
 public:
  DataflowRun(const Plan& plan, ArenaPlanner& planner, RunPool<DataflowRun>& pool);

  // Starts a step on the calling thread, whose kind is `thread`. When the step has ended, gives the run back to the
  // pool, and then calls `done` with the outcome. This may be on any thread, perhaps before Start returns. `step` must
  // be valid until `done` is called.
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
  // If a node is ready, puts its index into `index` and returns kNode. Otherwise returns kIdle if a kernel or an update
  // still waits, because nodes may become ready later. Returns kEnd if nothing waits.
  Turn NextTurn(int32_t* index);
  // Leaves the step and returns true if no node is ready but a kernel or an update still waits. The calling thread must
  // then not touch the step any more: another thread may continue the step and end it, when a kernel ends or the gate
  // opens. If the step has failed, it continues only when the last kernel that waits has ended.
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
  void LookAtWaits(RunLook* look) override COHORT_REQUIRES(mu_);
  // Ends the step. Called when no node is ready and no kernel waits. If EndsOnStream(), the step ends after the work
  // that its kernels have enqueued.
  void EndStep();
  void Finish();

  RunPool<DataflowRun>& pool_;
  Done done_;
  std::vector<std::optional<KernelContext>> contexts_;   // of the kernels that wait
  std::vector<int32_t> pending_ COHORT_GUARDED_BY(mu_);  // for each node: its predecessors that have not ended
  std::vector<int32_t> ready_ COHORT_GUARDED_BY(mu_);    // a queue: [ready_head_, size)
  size_t ready_head_ COHORT_GUARDED_BY(mu_) = 0;
  // The number of kernels that have not called `done`, plus 1 if updates wait at the gate.
  int32_t waiting_ COHORT_GUARDED_BY(mu_) = 0;
  // By the number of the kernel among the kernels that wait: whether it has started and has not called `done`.
  std::vector<bool> pending_kernels_ COHORT_GUARDED_BY(mu_);
  uint64_t ended_kernels_ COHORT_GUARDED_BY(mu_) = 0;    // kernels that have called `done`, in all steps
  std::vector<int32_t> at_gate_ COHORT_GUARDED_BY(mu_);  // updates that wait for the gate
  bool running_ COHORT_GUARDED_BY(mu_) = false;          // a thread is in Drain, or will be
};

}  // namespace cohort
