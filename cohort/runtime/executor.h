// Executor: one partition compiled into a plan - kernels made, slots assigned, order fixed - and the run of that plan.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/kernel.h"
#include "cohort/runtime/arena.h"
#include "cohort/runtime/elementwise_chain.h"

namespace cohort {

class FunctionLibrary;

// Thread-safe: any number of steps run at once. Lives until all of them have ended.
class Executor {
 public:
  using Mode = StepMode;
  using Done = std::function<void(const Status&)>;

  // Gives the values their memory, makes the kernels, keeps the constants. Throws what they throw, with node and
  // device; InvalidArgumentError for a cycle. `device` must outlive the executor. `functions`: what compiles the
  // functions that it calls, where it is itself the body of one; must outlive it. Else they come from the library of
  // `graph`.
  Executor(std::unique_ptr<Graph> graph, Device& device, FunctionLibrary* functions = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs a step of a synchronous plan on the calling thread (a part of it on the compute thread where it is worth that)
  // and returns its outcome.
  Status RunSync(const StepInfo& step);
  // Starts a step. `step` stays valid until `done` is called: once, on any thread, perhaps before RunAsync returns.
  // A failing kernel cancels the step's CancellationManager and aborts its rendezvous.
  void RunAsync(const StepInfo& step, Mode mode, Done done);

  Device& device() const { return device_; }
  const Graph& graph() const { return *graph_; }
  // No kernel waits: RunAsync in mode kInline has called `done` when it returns, unless a kernel was expensive.
  bool is_synchronous() const { return async_nodes_ == 0; }
  // Of the large values of its kernels; all zero on a device whose memory the host cannot read.
  ArenaStats arena_stats() const { return arena_planner_->stats(); }

 private:
  struct PlanNode {
    OpKernel* kernel = nullptr;
    AsyncOpKernel* async = nullptr;
    const Node* node = nullptr;
    int32_t input_begin = 0;
    int32_t num_inputs = 0;
    int32_t output_begin = 0;
    int32_t num_outputs = 0;
    int32_t successor_begin = 0;
    int32_t num_successors = 0;
    bool updates = false;
    int32_t chain = -1;  // index into chains_: this is the last node of one
  };
  // Neighbours that run as one (see elementwise_chain.h); where a step's shapes forbid it they run one by one.
  struct Chain {
    ElementwiseChain fused;
    std::vector<PlanNode> members;  // in order
    std::vector<int32_t> inputs;    // slots from outside that a step gives up, constants left out
  };
  struct StepState;
  struct AsyncRun;
  // On which thread a step's kernels run: the device's own, the caller's, or one that only brings something, such as a
  // network thread, which has no time for long work.
  enum class Thread { kCompute, kCaller, kOther };
  // Uses of a slot that holds a constant, which is never released or written over.
  static constexpr int32_t kForEver = 1 << 30;

  void Compile();
  void FuseChains(std::vector<std::vector<int32_t>>& predecessors);
  void LinkSuccessors(const std::vector<std::vector<int32_t>>& predecessors);
  void KeepConstants();
  void PlanArena();
  StepState* TakeState();
  void GiveBack(StepState* state);
  bool WantsArena(StepState* state, const StepInfo& step) const;
  void BeginStep(StepState* state, const StepInfo& step, Mode mode);
  // Runs nodes in order from `from` on. Returns the index of the node that should run on the compute thread, or the
  // number of nodes when the step has ended, well or not.
  size_t RunLinear(StepState* state, size_t from, Thread thread);
  // RunLinear to the end, with the move to the compute thread; then ends the step.
  void RunLinearAsync(StepState* state, size_t from, Thread thread);
  // Runs what is ready until nothing is; ends the step when nothing is left.
  void Drain(StepState* state, Thread thread);
  void FlushSends(StepState* state);
  // Runs a node or a whole chain, and gives up what they used. False when a kernel threw (the step is failed then).
  bool RunAndFinish(StepState* state, const PlanNode& plan_node, bool on_compute_thread);
  // What the node, or the chain that it ends, reads.
  std::span<const int32_t> InputSlots(const PlanNode& plan_node) const;
  bool RunFused(StepState* state, const PlanNode& plan_node, bool on_compute_thread);
  bool RunNode(StepState* state, const PlanNode& plan_node, bool on_compute_thread);
  void StartAsync(StepState* state, int32_t index, Thread thread);
  void FinishNode(StepState* state, const PlanNode& plan_node);
  void SkipAfterFailure(StepState* state);
  void PushSuccessors(StepState* state, const PlanNode& plan_node);
  void AsyncDone(AsyncRun* run, const Status& status);
  bool ShouldMove(const StepState* state, const PlanNode& plan_node, Thread thread) const;
  void Fail(StepState* state, const PlanNode& plan_node, const Status& status);
  // Whether the step is inside the task's update gate, which it enters where that needs no waiting.
  bool InGate(StepState* state);
  // In a synchronous plan: false when node `index` has to wait for the gate; the step then goes on from there on the
  // compute thread, and the caller leaves it alone.
  bool PassGateLinear(StepState* state, size_t index);
  // The same in a plan with asynchronous kernels, where other nodes may go on meanwhile.
  bool PassGate(StepState* state, int32_t index);
  void OpenedGate(StepState* state, int32_t index);
  // The gate has let the step in; it leaves again where it was cancelled meanwhile.
  void EnteredGate(StepState* state, const PlanNode& plan_node);
  // Whether the step was cancelled and stops here; it has failed then.
  bool Cancelled(StepState* state, const PlanNode& plan_node);
  void LeaveGateIfLast(StepState* state);
  void LeaveGate(StepState* state);
  // Cleans up and gives the state back; returns the step's outcome.
  Status CloseStep(StepState* state);
  void EndStep(StepState* state);

  std::unique_ptr<Graph> graph_;
  Device& device_;
  std::unique_ptr<FunctionLibrary> own_functions_;
  FunctionLibrary& functions_;
  std::vector<PlanNode> nodes_;  // topological order, constants left out
  std::vector<Chain> chains_;
  std::vector<std::unique_ptr<OpKernel>> kernels_;
  std::vector<int32_t> input_slots_;
  std::vector<int32_t> successors_;  // indices into nodes_
  std::vector<int32_t> initial_pending_;
  std::vector<int32_t> initial_uses_;                  // of each slot
  std::vector<std::pair<int32_t, Tensor>> constants_;  // slot, value
  std::vector<int32_t> sources_;                       // nodes without predecessors
  int32_t num_slots_ = 0;
  int32_t async_nodes_ = 0;
  int32_t update_nodes_ = 0;
  bool has_sends_ = false;
  bool has_host_memory_ = false;

  // Asynchronous kernels, whose threads and times are not the plan's, have the device's allocator, and so has all that
  // runs on a device with memory of its own, whose kernels all are asynchronous.
  std::unique_ptr<ArenaPlanner> arena_planner_;

  Mutex pool_mu_;
  std::vector<std::unique_ptr<StepState>> pool_ GUARDED_BY(pool_mu_);
};

}  // namespace cohort
