// SequentialRun: runs one step of a plan whose kernels do not wait.
#pragma once

#include "cohort/runtime/execution/step_run.h"

namespace cohort {

// Runs the nodes in the plan's order, on one thread at a time. If a kernel is expensive (its inputs are large), the
// step may move to the device's compute thread. Before its first update the step enters the update gate, and waits if
// the gate is closed. An executor's RunPool owns it and lends it to one step at a time.
class SequentialRun final : public StepRun {
 public:
  SequentialRun(const Plan& plan, ArenaPlanner& planner, RunPool<SequentialRun>& pool)
      : StepRun(plan, planner), pool_(pool) {}

  // Runs a step on the calling thread, a part of it perhaps on the compute thread. Then gives the run back to the pool
  // and returns the outcome. It may wait for the update gate, for the compute thread and for the stream. The waits for
  // the compute thread and the stream end because no kernel of the plan waits. The wait for the gate ends, too: a
  // thread that has closed the gate opens it again, and a thread that still waits in UpdateGate::Close gives up at its
  // timeout.
  Status Run(const StepInfo& step);
  // Starts a step on the calling thread, whose kind is `thread`. At the end gives the run back to the pool, and then
  // calls `done`. The rest is as in Executor::RunAsync.
  void Start(const StepInfo& step, StepMode mode, Done done, StepThread thread);
  // Starts a step on the compute thread, and returns at once. The rest is as in Start.
  void StartOnComputeThread(const StepInfo& step, StepMode mode, Done done);

 private:
  void Begin(const StepInfo& step, StepMode mode, Done done);
  // Runs nodes in order, beginning with `from`. Returns the index of a node that must run on the compute thread, or the
  // number of nodes if the step has ended (also if it has failed), or kParked if the step waits for the gate.
  size_t RunNodes(size_t from, StepThread thread);
  // Calls RunNodes, and calls it again on the compute thread if a node must run there. When all nodes have run, ends
  // the step.
  void RunToEnd(size_t from, StepThread thread);
  void MoveToComputeThread(size_t from);
  // Lets the step into the gate before node `index`, and returns true if the step is inside. If the step was started
  // with Run, waits for that. Otherwise returns false instead of waiting. When the gate opens, the compute thread then
  // continues the step. After it has returned false, the caller must not touch this object any more.
  bool PassGate(size_t index);
  // Waits until the step is inside the gate, which it needs for `node`.
  void EnterGate(const PlanNode& node);
  // Ends the step. Called when all nodes have run or the step has failed. If EndsOnStream(), the nodes may have only
  // enqueued their work; then the step ends later, on the compute thread, when this work has run.
  void EndStep();
  void Finish();

  RunPool<SequentialRun>& pool_;
  Done done_;  // null if the step was started with Run
};

}  // namespace cohort
