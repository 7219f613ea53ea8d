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
  // the compute thread and the stream end because no kernel of the plan waits. The wait for the gate ends because
  // the thread that closes the gate opens it again, or gives up when UpdateGate::Close reaches its timeout.
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
  // If the step was started with Run, waits for the gate and returns true. Otherwise returns false if node `index` must
  // wait for the gate. When the gate opens, the compute thread continues the step, so the caller must not touch it any
  // more.
  bool PassGate(size_t index);
  // Called when all nodes have run. On a device with streams: when all have enqueued their work; it then ends the step
  // after that work.
  void EndStep();
  void Finish();

  RunPool<SequentialRun>& pool_;
  Done done_;  // null if the step was started with Run
};

}  // namespace cohort
