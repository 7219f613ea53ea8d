// SequentialRun: a step of a plan whose kernels do not wait.
#pragma once

#include "cohort/runtime/execution/step_run.h"

namespace cohort {

// Runs the nodes in the plan's order, on one thread at a time. The step may move to the device's compute thread when a
// kernel is expensive, and it waits for the update gate before its first update.
class SequentialRun final : public StepRun {
 public:
  SequentialRun(const Plan& plan, ArenaPlanner& planner, RunPool<SequentialRun>& pool)
      : StepRun(plan, planner), pool_(pool) {}

  // Runs a step on this thread, and a part of it on the compute thread if it is worth that. Gives the run back and
  // returns the outcome. Blocks; ends because kernels that do not wait end.
  Status Run(const StepInfo& step);
  // Starts a step on `thread`, which is the thread of this call. See Executor::RunAsync.
  void Start(const StepInfo& step, StepMode mode, Done done, StepThread thread);
  // The same on the compute thread.
  void StartOnComputeThread(const StepInfo& step, StepMode mode, Done done);

 private:
  void Begin(const StepInfo& step, StepMode mode, Done done);
  // Runs nodes in order from `from` on. Returns the index of the node that should run on the compute thread, the number
  // of nodes when the step has ended, well or not, or kParked.
  size_t RunNodes(size_t from, StepThread thread);
  // RunNodes to the end, with the move to the compute thread; then ends the step.
  void RunToEnd(size_t from, StepThread thread);
  void MoveToComputeThread(size_t from);
  // Returns false if node `index` has to wait for the gate: the step then goes on from there on the compute thread, and
  // the caller leaves it alone.
  bool PassGate(size_t index);
  // All nodes have run, or on streams have enqueued their work.
  void EndStep();
  void Finish();

  RunPool<SequentialRun>& pool_;
  Done done_;  // null in Run
};

}  // namespace cohort
