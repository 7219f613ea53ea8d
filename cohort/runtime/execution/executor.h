// Executor: compiles one partition for its device and runs its steps.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cohort/runtime/execution/dataflow_run.h"
#include "cohort/runtime/execution/sequential_run.h"
#include "cohort/runtime/execution/step_recordings.h"
#include "cohort/runtime/plan/arena.h"
#include "cohort/runtime/plan/plan.h"

namespace cohort {

// Owns the plan of one partition and its runs. Thread-safe: any number of steps may run at the same time. Its owner (an
// Executable or a FunctionLibrary) must keep it until all steps have ended.
class Executor {
 public:
  using Mode = StepMode;
  using Done = StepRun::Done;
  using NextArgs = StepRecordings::NextArgs;

  // Compiles the graph. The parameters and the errors are those of CompilePlan.
  Executor(std::unique_ptr<Graph> graph, Device& device, FunctionLibrary* functions = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs a step on the calling thread and returns its outcome. If a kernel is expensive (its inputs are large), the
  // rest of the step may run on the compute thread. A failure has the same effect as in RunAsync; nothing is thrown.
  // `next` is as in StepRecordings::Run. Requires: is_synchronous().
  Status RunSync(const StepInfo& step, const NextArgs& next = {}) {
    if (recordings_ != nullptr) [[unlikely]]
      return recordings_->Run(
          step, [&] { return sequential_runs_.Take().Run(step); }, next);
    return sequential_runs_.Take().Run(step);
  }
  // Starts a step. Calls `done` once, on any thread, perhaps before RunAsync returns. `step` must be valid until `done`
  // is called. If a kernel fails, cancels the step's CancellationManager, aborts its rendezvous, and gives `done` the
  // error. `next` is as in StepRecordings::Start.
  void RunAsync(const StepInfo& step, Mode mode, Done done, const NextArgs* next = nullptr);
  // Does what StepRecordings::DropNext does.
  void DropNext() {
    if (recordings_ != nullptr) recordings_->DropNext();
  }

  Device& device() const { return plan_->device; }
  const Graph& graph() const { return *plan_->graph; }
  // Returns whether no kernel of the plan waits. If so, RunAsync in mode kInline calls `done` before it returns, unless
  // a kernel is expensive, the update gate is closed, or the device has streams.
  bool is_synchronous() const { return plan_->is_synchronous(); }
  // Adds what the runs of the plan, and of the functions that it calls, do now. Waits for no kernel.
  void LookAt(std::vector<RunLook>* looks);
  // Returns the statistics of the arena. All are zero on a device whose memory the host cannot read.
  ArenaStats arena_stats() const { return arena_planner_.stats(); }

 private:
  void Launch(const StepInfo& step, Mode mode, Done done);
  template <typename Run>
  void Start(Run& run, const StepInfo& step, Mode mode, Done done);

  const std::unique_ptr<const Plan> plan_;
  // The arena is used only if the device allocates host memory, and only by kernels that do not wait.
  ArenaPlanner arena_planner_;
  RunPool<SequentialRun> sequential_runs_;  // used if the plan is synchronous
  RunPool<DataflowRun> dataflow_runs_;      // used if it is not
  // Null if the device records no steps, or if this is the body of a function.
  const std::unique_ptr<StepRecordings> recordings_;
};

}  // namespace cohort
