// DataflowRun: a step of a plan with kernels that wait.
#pragma once

#include <optional>
#include <vector>

#include "cohort/runtime/execution/step_run.h"

namespace cohort {

// Runs what is ready, first come first served. One thread at a time runs kernels that do not wait; kernels that wait
// end on any threads, and the thread that ends one goes on with the step if no other does.
class DataflowRun final : public StepRun {
 public:
  DataflowRun(const Plan& plan, ArenaPlanner& planner, RunPool<DataflowRun>& pool);

  // Starts a step on `thread`, which is the thread of this call. See Executor::RunAsync.
  void Start(const StepInfo& step, StepMode mode, Done done, StepThread thread);
  // The same on the compute thread.
  void StartOnComputeThread(const StepInfo& step, StepMode mode, Done done);

 private:
  // What the thread that runs the step does next.
  enum class Turn { kNode, kIdle, kLeave, kEnd };

  void Begin(const StepInfo& step, StepMode mode, Done done);
  // Runs what is ready until nothing is; ends the step when nothing is left.
  void Drain(StepThread thread);
  void DrainOnComputeThread();
  // Takes the next node that is ready. kIdle: kernels are under way, and others may become ready. kLeave: the step has
  // failed, and the last kernel under way ends it.
  Turn NextTurn(int32_t* index);
  // Returns whether the thread may leave the step because nothing is ready; what ends next then goes on with it.
  bool LeaveIfIdle();
  // Runs the node, or starts it if it waits. Returns false if the thread has handed the step to the compute thread.
  bool Visit(int32_t index, StepThread thread);
  void StartAsync(int32_t index, StepThread thread);
  void AsyncDone(int32_t index, const Status& status);
  void PushSuccessors(const PlanNode& node) COHORT_REQUIRES(mu_);
  // After a failure nothing new runs, except that a set of updates that has begun is applied whole.
  void SkipAfterFailure() COHORT_REQUIRES(mu_);
  // Returns false if node `index` has to wait for the update gate; other nodes may go on meanwhile.
  bool PassGate(int32_t index);
  void OpenedGate(int32_t index);
  // All nodes have run, or on streams have enqueued their work.
  void EndStep();
  void Finish();

  RunPool<DataflowRun>& pool_;
  Done done_;
  std::vector<std::optional<KernelContext>> contexts_;   // of the kernels that wait
  std::vector<int32_t> pending_ COHORT_GUARDED_BY(mu_);  // predecessors of each node that have not ended
  std::vector<int32_t> ready_ COHORT_GUARDED_BY(mu_);    // a queue: [ready_head_, size)
  size_t ready_head_ COHORT_GUARDED_BY(mu_) = 0;
  int32_t waiting_ COHORT_GUARDED_BY(mu_) = 0;           // kernels that have not called done, and the gate
  std::vector<int32_t> at_gate_ COHORT_GUARDED_BY(mu_);  // updates that wait for the gate
  bool running_ COHORT_GUARDED_BY(mu_) = false;          // a thread is in Drain
};

}  // namespace cohort
