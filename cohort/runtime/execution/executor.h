// Executor: one partition compiled for its device, and the steps that run it.
#pragma once

#include <functional>
#include <memory>

#include "cohort/runtime/execution/dataflow_run.h"
#include "cohort/runtime/execution/sequential_run.h"
#include "cohort/runtime/plan/arena.h"
#include "cohort/runtime/plan/plan.h"

namespace cohort {

// Owns the plan of a partition and the runs of it. Thread-safe: any number of steps run at once. Its owner keeps it
// until all of them have ended.
class Executor {
 public:
  using Mode = StepMode;
  using Done = StepRun::Done;

  // Compiles; see CompilePlan for the parameters and for what it throws.
  Executor(std::unique_ptr<Graph> graph, Device& device, FunctionLibrary* functions = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs a step of a synchronous plan on the calling thread (a part of it on the compute thread where it is worth that)
  // and returns its outcome.
  Status RunSync(const StepInfo& step) { return sequential_runs_.Take().Run(step); }
  // Starts a step. `step` stays valid until `done` is called: once, on any thread, perhaps before RunAsync returns.
  // A failing kernel cancels the step's CancellationManager and aborts its rendezvous.
  void RunAsync(const StepInfo& step, Mode mode, Done done);

  Device& device() const { return plan_->device; }
  const Graph& graph() const { return *plan_->graph; }
  // No kernel waits: RunAsync in mode kInline has called `done` when it returns, unless a kernel was expensive.
  bool is_synchronous() const { return plan_->is_synchronous(); }
  // Of the large values of its kernels; all zero on a device whose memory the host cannot read.
  ArenaStats arena_stats() const { return arena_planner_.stats(); }

 private:
  template <typename Run>
  void Start(Run& run, const StepInfo& step, Mode mode, Done done);

  const std::unique_ptr<const Plan> plan_;
  // Kernels that wait, whose threads and times are not the plan's, have the device's allocator, and so has all that
  // runs on a device with memory of its own.
  ArenaPlanner arena_planner_;
  RunPool<SequentialRun> sequential_runs_;  // of a synchronous plan
  RunPool<DataflowRun> dataflow_runs_;      // of any other
};

}  // namespace cohort
